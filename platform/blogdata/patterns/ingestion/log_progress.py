"""How much of an access log is split: a small file beside the log, and the parts themselves.

The file lies in the landing zone, where producers write, too: it is believed only if it has the form that
:func:`write` gives it. If it is lost or damaged, the log is split again from its beginning, into the same parts.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from blogdata.errors import PlatformError
from blogdata.patterns.idempotency.keyed_idempotency import STAMP
from blogdata.patterns.ingestion.readiness_marker import start_of_key
from blogdata.patterns.ingestion.whole_files import BLOCK, LONGEST_NAME, content, shortened, skip, write_whole
from blogdata.publish.partitions import Grain

PROGRESS = ".replicated"
"""Folder, beside the logs, of the files with their progress."""
_OFFSET = re.compile(rf"-(?:{STAMP}-)?(\d{{12}})\.log(?:\.part)?")


class LogRewritten(PlatformError):
    """Raised when a log no longer begins with the bytes that were taken from it before."""


class LogTaken(PlatformError):
    """Raised when a log begins with what was taken from another one: it is that log, rotated or copied."""


@dataclass(frozen=True, kw_only=True)
class Taken:
    """Progress of a log: its complete lines, and possibly an incomplete last line in a part of its own.

    Args:
        covered: Bytes of the (decompressed) log that were taken as complete lines.
        hour: Hour of the last complete line; None without one.
        erased_sha256: Digest of these bytes as they will be when lines that are being erased are; None if none are.
    """

    covered: int
    sha256: str
    hour: str | None
    source_size: int
    source_mtime_ns: int
    erased_sha256: str | None = None

    @property
    def digests(self) -> tuple[str, ...]:
        """The digests that the bytes taken may have, before and after lines of them were erased."""
        return (self.sha256,) if self.erased_sha256 is None else (self.sha256, self.erased_sha256)


def file_of(log: Path) -> Path:
    """Return the path of the file with the progress of a log."""
    # Written under `.….json.partial`.
    return log.parent / PROGRESS / f"{shortened(log.name, LONGEST_NAME - 14)}.json"


def write(log: Path, taken: Taken) -> None:
    """Keep the progress of a log."""
    write_whole(file_of(log), json.dumps(asdict(taken)).encode())


def read(log: Path) -> Taken | None:
    """Read the progress of a log; None if there is none, or none that can be believed.

    Raises:
        OSError: It cannot be read.
    """
    return _read(file_of(log))


def is_done(log: Path) -> bool:
    """Return whether a log is as it was when it was split."""
    try:
        taken, stat = read(log), log.stat()
    except OSError:
        # Splitting it meets the same error, and reports it.
        return False
    return taken is not None and (taken.source_size, taken.source_mtime_ns) == (stat.st_size, stat.st_mtime_ns)


def parts(landing: Path, prefix: str, *, since: str = "") -> list[tuple[int, Path]]:
    """List the parts of a log with their offsets, in the order of the log."""
    found = _in_hours(landing, f"{prefix}-*.log*", since)
    matches = [(_OFFSET.fullmatch(path.name.removeprefix(prefix)), path) for path in found]
    return sorted((int(match[1]), path) for match, path in matches if match is not None)


def unfinished(landing: Path, prefix: str, *, since: str = "") -> list[Path]:
    """List the hidden files in which interrupted calls were writing parts of a log."""
    return _in_hours(landing, f".{prefix}-*.log*.partial", since)


def require_same(log: Path, own: Sequence[tuple[int, Path]]) -> None:
    """Refuse a log without progress that does not have at a part's place what is in the part."""
    with content(log) as file:
        position = 0
        for offset, path in own:
            # The begin of a line makes way anyway; a part may overlap one that an interrupted call has written.
            if offset >= position and path.suffix == ".log":
                skip(file, offset - position)
                position = offset + path.stat().st_size
                with path.open("rb") as part:
                    while block := part.read(BLOCK):
                        if file.read(len(block)) != block:
                            raise rewritten(log)


def require_new(log: Path) -> None:
    """Refuse a log without progress that begins with what was taken from another one."""
    digest, position = hashlib.sha256(), 0
    with content(log) as file:
        for covered, sha256, name in sorted(_others(log)):
            position += take(file, covered - position, digest)
            if position < covered:
                return
            if digest.hexdigest() == sha256:
                raise LogTaken(
                    what=f"the log begins with what was taken from {name}: it is the same one, rotated or copied",
                    where=str(log),
                    next_step="nothing was taken from it: remove the copy; the command that lands logs knows a rotated "
                    "one again",
                )


def rewritten(log: Path) -> LogRewritten:
    """Build the error of a log that no longer begins with what was taken from it."""
    return LogRewritten(
        what="the log no longer begins with what was taken from it",
        where=str(log),
        next_step="land it under another name, so that its lines are taken as a log of their own",
    )


def take(file: IO[bytes], count: int, digest: hashlib._Hash) -> int:
    """Add the next bytes of a file to a digest, up to a number of them; return how many there were."""
    taken = 0
    while taken < count and (block := file.read(min(BLOCK, count - taken))):
        digest.update(block)
        taken += len(block)
    return taken


def _in_hours(landing: Path, names: str, since: str) -> list[Path]:
    days = [day for day in landing.glob("visits/date=*") if day.name >= f"date={since[:10]}"]
    return [path for day in days for path in day.glob(f"hour=*/{names}")]


def _read(file: Path) -> Taken | None:
    if not file.is_file():
        return None
    try:
        found = json.loads(file.read_bytes())
        # Earlier releases kept more.
        known = {name: found[name] for name in Taken.__dataclass_fields__ if name in found}
        numbers = [known[name] for name in ("covered", "source_size", "source_mtime_ns")]
        hour, sha256, erased = known["hour"], known["sha256"], known.get("erased_sha256")
    except (ValueError, TypeError, KeyError):
        return None
    is_hour = hour is None or (isinstance(hour, str) and start_of_key(hour, Grain.HOUR) is not None)
    are_numbers = all(type(number) is int for number in numbers) and numbers[0] >= 0
    are_digests = isinstance(sha256, str) and (erased is None or isinstance(erased, str))
    return Taken(**known) if are_numbers and is_hour and are_digests else None


def _others(log: Path) -> Iterator[tuple[int, str, str]]:
    own = file_of(log)
    for file in own.parent.glob("*.json"):
        taken = None if file == own else _read(file)
        if taken is not None and taken.covered:
            yield from ((taken.covered, sha256, file.stem) for sha256 in taken.digests)
