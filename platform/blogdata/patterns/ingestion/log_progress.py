"""How much of an access log is split: a small file beside the log, and the parts themselves if that file is lost.

The file lies in the landing zone, where producers write, too: it is believed only if it has the form that
:func:`write` gives it. One that is lost or damaged is no loss, because the parts show the same.
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
from blogdata.patterns.ingestion.whole_files import BLOCK, LONGEST_NAME, content, shortened, write_whole
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
        sha256: Digest of these bytes, hexadecimal.
        hour: Hour of the last complete line; None without one.
        erased_sha256: Digest of these bytes as they will be when lines that are being erased are; None if none are.
    """

    covered: int
    sha256: str
    hour: str | None
    source_size: int
    source_mtime_ns: int
    erased_sha256: str | None = None

    def begins(self, sha256: str) -> bool:
        """Return whether a digest is that of the bytes taken, before or after lines of them were erased."""
        return sha256 in (self.sha256, self.erased_sha256)


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
    """List the hidden files in which interrupted calls were writing parts of a log.

    Args:
        prefix: As in :func:`parts`.
        since: As in :func:`parts`.
    """
    return _in_hours(landing, f".{prefix}-*.log*.partial", since)


def recovered(log: Path, own: Sequence[tuple[int, Path]]) -> Taken | None:
    """Find the progress of a log again from its parts, which are compared with it.

    Parts of hours whose folders were removed may be missing. A part behind one that overlaps it, or that ends within a
    line, does not count: it has to be taken again.

    Args:
        own: Its parts, as of :func:`parts`.

    Returns:
        The progress; None if there are no parts.

    Raises:
        LogRewritten: The log does not have at a part's place what is in the part.
    """
    taken: list[tuple[int, Path]] = []
    covered = 0
    for offset, path in own:
        if offset < covered:
            covered = taken.pop()[0]
            break
        if not ends_a_line(path):
            covered = offset
            break
        taken.append((offset, path))
        covered = offset + path.stat().st_size
    if not own:
        return None
    digest = hashlib.sha256()
    with content(log) as file:
        position = 0
        for offset, path in taken:
            position += take(file, offset - position, digest)
            if position != offset or not _goes_on_with(file, path, digest):
                raise rewritten(log)
            position += path.stat().st_size
        if position + take(file, covered - position, digest) != covered:
            raise rewritten(log)
    hour = f"{taken[-1][1].parent.parent.name[5:]}T{taken[-1][1].parent.name[5:]}" if taken else None
    return Taken(covered=covered, sha256=digest.hexdigest(), hour=hour, source_size=-1, source_mtime_ns=0)


def require_new(log: Path) -> None:
    """Refuse a log without progress that begins with what was taken from another one.

    Raises:
        LogTaken: It does; its lines would be taken twice.
    """
    others = sorted(_others(log))
    digest, position = hashlib.sha256(), 0
    with content(log) as file:
        for covered, sha256, name in others:
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


def _in_hours(landing: Path, names: str, since: str) -> list[Path]:
    days = [day for day in landing.glob("visits/date=*") if day.name >= f"date={since[:10]}"]
    return [path for day in days for path in day.glob(f"hour=*/{names}")]


def _read(file: Path) -> Taken | None:
    if not file.is_file():
        return None
    try:
        found = json.loads(file.read_bytes())
        # Earlier releases kept the part of an incomplete line, too; it is found by its offset.
        believed = {name: found[name] for name in ("covered", "sha256", "hour", "source_size", "source_mtime_ns")}
    except (ValueError, TypeError, KeyError):
        return None
    numbers, hour = (believed["covered"], believed["source_size"], believed["source_mtime_ns"]), believed["hour"]
    is_hour = hour is None or (isinstance(hour, str) and start_of_key(hour, Grain.HOUR) is not None)
    are_numbers = all(type(number) is int for number in numbers) and numbers[0] >= 0
    erased = found.get("erased_sha256")
    are_digests = isinstance(believed["sha256"], str) and (erased is None or isinstance(erased, str))
    return Taken(**believed, erased_sha256=erased) if are_numbers and is_hour and are_digests else None


def _others(log: Path) -> Iterator[tuple[int, str, str]]:
    own = file_of(log)
    for file in own.parent.glob("*.json"):
        taken = None if file == own else _read(file)
        if taken is not None and taken.covered:
            yield from ((taken.covered, sha256, file.stem) for sha256 in (taken.sha256, taken.erased_sha256) if sha256)


def take(file: IO[bytes], count: int, digest: hashlib._Hash) -> int:
    """Add the next bytes of a file to a digest, up to a number of them; return how many there were."""
    taken = 0
    while taken < count and (block := file.read(min(BLOCK, count - taken))):
        digest.update(block)
        taken += len(block)
    return taken


def _goes_on_with(file: IO[bytes], part: Path, digest: hashlib._Hash) -> bool:
    with part.open("rb") as expected:
        while block := expected.read(BLOCK):
            if file.read(len(block)) != block:
                return False
            digest.update(block)
    return True


def ends_a_line(part: Path) -> bool:
    """Return whether a part ends in a line feed."""
    with part.open("rb") as file:
        if not part.stat().st_size:
            return False
        file.seek(-1, 2)
        return file.read(1) == b"\n"
