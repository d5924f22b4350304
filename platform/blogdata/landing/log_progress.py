"""How much of an access log is split, in a small file beside it.

Producers write in the landing zone, too: without a file of the expected form, the log is split again from its
beginning, into the same parts.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from blogdata.contract.partitions import Grain
from blogdata.errors import PlatformError
from blogdata.files import write_whole
from blogdata.landing.landed_formats import LONGEST_NAME, content, digested, shortened
from blogdata.landing.readiness_marker import start_of_key

PROGRESS = ".replicated"
"""Folder, beside the logs, of the files with their progress."""
STAMP = r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d"
"""Regular expression of the time of a copy in the name of a part; it sorts after the hour that it begins with."""
_OFFSET = re.compile(rf"-(?:{STAMP}-)?(\d{{12}})\.log(?:\.part)?")


@dataclass(frozen=True, kw_only=True)
class Taken:
    """Progress of a log, whose incomplete last line is a part of its own."""

    covered: int
    """Decompressed bytes that were taken as complete lines."""
    sha256: str
    hour: str | None
    """That of the last complete line."""
    source_size: int
    source_mtime_ns: int
    header: str
    """The `#Fields` line above what is appended later."""
    erased_sha256: str | None = None
    """Digest of the bytes taken once the lines that are being erased are."""

    @property
    def digests(self) -> tuple[str, ...]:
        """The digests that the bytes taken may have, before and after lines of them were erased."""
        return (self.sha256,) if self.erased_sha256 is None else (self.sha256, self.erased_sha256)


_TAKEN = TypeAdapter(Taken)


def file_of(log: Path) -> Path:
    # Written under `.….json.partial`.
    return log.parent / PROGRESS / f"{shortened(log.name, LONGEST_NAME - 14)}.json"


def write(log: Path, taken: Taken) -> None:
    write_whole(file_of(log), json.dumps(asdict(taken)).encode())


def read(log: Path) -> Taken | None:
    """Read the progress of a log; None if there is none, or none that can be believed."""
    return _read(file_of(log))


def is_done(log: Path) -> bool:
    try:
        taken, stat = read(log), log.stat()
    except OSError:
        # Splitting it meets the same error, and reports it.
        return False
    return taken is not None and (taken.source_size, taken.source_mtime_ns) == (stat.st_size, stat.st_mtime_ns)


def parts(landing: Path, prefix: str, *, since: str = "") -> list[tuple[int, Path]]:
    paths = _in_hours(landing, f"{prefix}-*.log*", since)
    matches = [(_OFFSET.fullmatch(path.name.removeprefix(prefix)), path) for path in paths]
    return sorted((int(match[1]), path) for match, path in matches if match is not None)


def unfinished(landing: Path, prefix: str, *, since: str = "") -> list[Path]:
    return _in_hours(landing, f".{prefix}-*.log*.partial", since)


def require_new(log: Path) -> None:
    digest, position = hashlib.sha256(), 0
    with content(log) as file:
        for covered, sha256, name in sorted(_others(log)):
            position += digested(file, covered - position, digest)
            if position < covered:
                return
            if digest.hexdigest() == sha256:
                raise PlatformError(
                    what=f"the log begins with what was taken from {name}: it is the same one, rotated or copied",
                    where=str(log),
                    next_step="nothing was taken from it: remove the copy; the command that lands logs knows a rotated "
                    "one again",
                )


def _in_hours(landing: Path, names: str, since: str) -> list[Path]:
    days = [day for day in landing.glob("visits/date=*") if day.name >= f"date={since[:10]}"]
    return [path for day in days for path in day.glob(f"hour=*/{names}")]


def _read(file: Path) -> Taken | None:
    if not file.is_file():
        return None
    try:
        taken = _TAKEN.validate_json(file.read_bytes(), strict=True)
    except ValidationError:
        return None
    is_hour = taken.hour is None or start_of_key(taken.hour, Grain.HOUR) is not None
    return taken if is_hour and taken.covered >= 0 else None


def _others(log: Path) -> Iterator[tuple[int, str, str]]:
    progress = file_of(log)
    for file in progress.parent.glob("*.json"):
        taken = None if file == progress else _read(file)
        if taken is not None and taken.covered:
            yield from ((taken.covered, sha256, file.stem) for sha256 in taken.digests)
