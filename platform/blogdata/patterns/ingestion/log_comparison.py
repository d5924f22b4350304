"""Compares a log with the landed ones by their content, decompressed (Passthrough Replicator): names say nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from blogdata.landing.landed_formats import DAMAGED
from blogdata.landing.landed_links import leading_out
from blogdata.landing.log_formats import formats
from blogdata.patterns.ingestion import log_progress
from blogdata.patterns.ingestion.whole_files import BLOCK, SourceMissing, content, skip

Relation = Literal["same", "beginning", "grown"]
_RELATIONS: tuple[Relation, ...] = ("same", "beginning", "grown")
_HEAD = 1 << 16
"""Bytes at the beginning of a log that it is known by, at most."""
_MOMENT = re.compile(rb"(?:(?<=/\d{4}:)|(?<![0-9A-Fa-f:]))\d\d:\d\d:\d\d(?![0-9A-Fa-f:])|\b\d{10}\b")
"""A time of day, or seconds since 1970."""


@dataclass(frozen=True, kw_only=True)
class Known:
    """A landed copy of a log.

    Args:
        relation: What the log is to it: the `same`, its `beginning`, or `grown`, so that the copy is its beginning.
        bytes: Number of bytes that both have, decompressed.
        at: Where the log begins in the copy, decompressed; not 0 if several logs or an earlier beginning landed as one.
    """

    copy: Path
    relation: Relation
    bytes: int
    at: int = 0


def landed_logs(folder: Path) -> list[Path]:
    """List the landed logs in a folder, by name; links that lead out of the landing zone are none."""
    found = sorted(folder.iterdir()) if folder.is_dir() else []
    return [path for path in found if path.name[0] not in "_." and is_there(path)]


def is_there(path: Path) -> bool:
    """Return whether a path in the landing zone is a file with content, and no link that leads out of the zone."""
    return path.is_file() and leading_out(path, path.parent.parent) is None and path.stat().st_size > 0


def alike(log: Path, copies: Iterable[Path]) -> Known | None:
    """Find the landed copy that begins as a log does; a damaged file is a copy of none, and has none.

    Returns:
        The copy that has all of the log if there is one; otherwise the longest that is its beginning. None if there is
        none.
    """
    begin = _head(log)
    near = [copy for copy in copies if begin and ((head := _head(copy)).startswith(begin) or begin.startswith(head))]
    found = [known for copy in near if (known := _compared(log, copy)) is not None]
    return min(found, key=lambda known: (_RELATIONS.index(known.relation), -known.bytes), default=None)


def within(log: Path, copies: Iterable[Path]) -> Known | None:
    """Find a landed log that another one begins within; None if there is none."""
    sought, hour = _beginnings([log]), formats().hour_of(_head(log).partition(b"\n")[0])
    later = [copy for copy in copies if sought and not _ended_before(copy, hour)]
    places = (_compared(log, copy, at) for copy in later for _, at in _places(sought, copy))
    return next((known for known in places if known), None)


def repeated(log: Path, copies: Iterable[Path], *, behind: int) -> tuple[Path, int] | None:
    """Find a landed log that begins within a log, such as in one that was put together of several, and where."""
    places = _places(_beginnings(copies), log, behind)
    return next(((copy, at) for copy, at in places if _compared(copy, log, at)), None)


def _compared(log: Path, copy: Path, at: int = 0) -> Known | None:
    common = 0
    try:
        with content(log) as ours, content(copy) as theirs:
            skip(theirs, at)
            while True:
                block, other = ours.read(BLOCK), theirs.read(BLOCK)
                shared = min(len(block), len(other))
                if block[:shared] != other[:shared]:
                    return None
                common += shared
                # Only the last block of a file is not full.
                if len(block) == len(other) == BLOCK:
                    continue
                relation: Relation = "same"
                if len(block) != len(other):
                    relation = "grown" if len(block) > len(other) else "beginning"
                return Known(copy=copy, relation=relation, bytes=common, at=at)
    except (SourceMissing, *DAMAGED):
        return None


def _head(log: Path) -> bytes:
    """Read the first bytes of a log, which all logs but copies of it differ in; none of one that cannot be read."""
    try:
        status = log.stat()
        return _head_as_of(log, (status.st_ino, status.st_mtime_ns, status.st_size))
    except (SourceMissing, *DAMAGED):
        return b""


@lru_cache(maxsize=512)
def _head_as_of(log: Path, state: tuple[int, int, int]) -> bytes:
    with content(log) as file:
        return file.read(_HEAD)


def _beginnings(logs: Iterable[Path]) -> dict[bytes, list[Path]]:
    """Map the first lines of logs to these, up to the first line of another moment.

    Lines of one moment tell nothing: they may be logged twice, around a rotation.
    """
    found: dict[bytes, list[Path]] = {}
    for log in logs:
        lines = _head(log).splitlines(keepends=True)
        moments = [(number, moment[0]) for number, line in enumerate(lines) if (moment := _MOMENT.search(line))]
        change = next((number for number, moment in moments if moment != moments[0][1]), None)
        if change is not None and lines[change].endswith(b"\n"):
            found.setdefault(b"".join(lines[: change + 1]), []).append(log)
    return found


def _places(beginnings: dict[bytes, list[Path]], log: Path, behind: int = 0) -> Iterator[tuple[Path, int]]:
    """Find where others may begin within a log, neither at its first line nor before a place."""
    longest, window, start = max(map(len, beginnings), default=0), b"", max(behind - 1, 0)
    try:
        with content(log) as file:
            skip(file, start)
            while beginnings and (block := file.read(BLOCK)):
                window += block
                for lines, others in beginnings.items():
                    at = -1
                    while (at := window.find(b"\n" + lines, at + 1)) >= 0:
                        yield from ((other, start + at + 1) for other in others)
                start += max(len(window) - longest, 0)
                window = window[-longest:]
    except (SourceMissing, *DAMAGED):
        return


def _ended_before(copy: Path, hour: str | None) -> bool:
    """Return whether all of a landed log was logged before an hour, as far as its progress tells."""
    taken = log_progress.read(copy) if hour is not None and log_progress.is_done(copy) else None
    return taken is not None and taken.hour is not None and taken.hour < str(hour)
