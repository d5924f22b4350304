"""Compares a log with the landed ones by their content, decompressed: their names say nothing.

Part of the Passthrough Replicator, whose card explains the reasons.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from blogdata.patterns.ingestion import log_progress
from blogdata.patterns.ingestion.combined_log import hour_of_combined
from blogdata.patterns.ingestion.landed_formats import DAMAGED
from blogdata.patterns.ingestion.landed_links import leading_out
from blogdata.patterns.ingestion.whole_files import BLOCK, SourceMissing, content, skip

Relation = Literal["same", "beginning", "grown"]
_RELATIONS: tuple[Relation, ...] = ("same", "beginning", "grown")
_HEAD = 4096
_SOUGHT = 1 << 16
"""Bytes at the beginning of a log that are looked for within others, at most."""
_Sought = Mapping[tuple[bytes, bytes], Sequence[tuple[Path, int]]]
"""Two lines to the logs that have them near their beginning, each with the bytes before the second one."""
_Stamp = tuple[int, int, int]
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


@dataclass(frozen=True, kw_only=True)
class Repeated:
    """A landed log that begins within another one."""

    copy: Path
    at: int


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
        The copy that has all of the log if there is one; otherwise the longest that is its beginning, because earlier
        releases made several. None if there is none.
    """
    begin = _head(log)
    heads = {copy: _head_of_copy(copy, _stamp(copy)) for copy in copies}
    near = [copy for copy, head in heads.items() if begin and (head.startswith(begin) or begin.startswith(head))]
    found = [known for copy in near if (known := _compared(log, copy)) is not None]
    return min(found, key=lambda known: (_RELATIONS.index(known.relation), -known.bytes), default=None)


def within(log: Path, copies: Iterable[Path]) -> Known | None:
    """Find a landed log that another one begins within; None if there is none."""
    sought, hour = _sought([log]), hour_of_combined(_head(log).partition(b"\n")[0])
    later = [copy for copy in copies if sought and not _ended_before(copy, hour)]
    places = (_compared(log, copy, at) for copy in later for _, at in _places(sought, copy))
    return next((known for known in places if known and _tells(_head(log, min(known.bytes, _SOUGHT)))), None)


def repeated(log: Path, copies: Iterable[Path], *, behind: int) -> Repeated | None:
    """Find a landed log that begins within a log, such as in one that was put together of several."""
    for copy, at in _places(_sought(copies), log, behind):
        known = _compared(copy, log, at)
        if known is not None and _tells(_head(copy, min(known.bytes, _SOUGHT))):
            return Repeated(copy=copy, at=at)
    return None


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


def _head(log: Path, size: int = _HEAD) -> bytes:
    """Read the first bytes of a log, which all logs but copies of it differ in; none of one that cannot be read."""
    try:
        with content(log) as file:
            return file.read(size)
    except (SourceMissing, *DAMAGED):
        return b""


def _stamp(log: Path) -> _Stamp:
    """Return what changes with the content of a landed file, which is only ever replaced."""
    try:
        status = log.stat()
    except FileNotFoundError:
        return 0, 0, 0
    return status.st_ino, status.st_mtime_ns, status.st_size


@lru_cache(maxsize=4096)
def _head_of_copy(copy: Path, stamp: _Stamp) -> bytes:
    """Read the first bytes of a landed log; with another stamp they are read anew."""
    return _head(copy)


@lru_cache(maxsize=4096)
def _change_of(log: Path, stamp: _Stamp) -> tuple[tuple[bytes, bytes], int] | None:
    """Find the first line of another moment than the first one, with the one before it; and the bytes before it."""
    lines = _head(log, _SOUGHT).splitlines(keepends=True)
    number = _change(lines)
    if not number or not lines[number].endswith(b"\n"):
        return None
    return (lines[number - 1], lines[number]), sum(map(len, lines[:number]))


def _tells(lines: bytes) -> bool:
    """Return whether lines can be known again: those of one second may be logged twice, around a rotation."""
    return _change(lines.splitlines(keepends=True)) is not None


def _change(lines: Sequence[bytes]) -> int | None:
    """Return the number of the first line of another moment than the first one; None if there is none."""
    moments = ((number, found[0]) for number, line in enumerate(lines) if (found := _MOMENT.search(line)))
    _, first = next(moments, (0, b""))
    return next((number for number, moment in moments if moment != first), None)


def _sought(logs: Iterable[Path]) -> _Sought:
    """Find the two lines that each log is looked for by: the first of another moment, and the one before it."""
    found: dict[tuple[bytes, bytes], list[tuple[Path, int]]] = {}
    for log in logs:
        if change := _change_of(log, _stamp(log)):
            pair, before = change
            found.setdefault(pair, []).append((log, before))
    return found


def _places(sought: _Sought, log: Path, behind: int = 0) -> Iterator[tuple[Path, int]]:
    """Find where others may begin within a log, neither at its first line nor before a place."""
    previous, at = b"", behind
    try:
        with content(log) as file:
            skip(file, behind)
            while sought and (line := file.readline(BLOCK)):
                for other, length in sought.get((previous, line), ()):
                    if at - length > 0 and at - length >= behind:
                        yield other, at - length
                previous, at = line, at + len(line)
    except (SourceMissing, *DAMAGED):
        return


def _ended_before(copy: Path, hour: str | None) -> bool:
    """Return whether all of a landed log was logged before an hour, as far as its progress tells."""
    taken = log_progress.read(copy) if hour is not None and log_progress.is_done(copy) else None
    return taken is not None and taken.hour is not None and taken.hour < str(hour)
