"""Compares a log with the landed ones by their content, decompressed: their names say nothing.

Part of the Passthrough Replicator, whose card explains the reasons.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from patterns.ingestion.landed_formats import DAMAGED
from patterns.ingestion.landed_links import leading_out
from patterns.ingestion.whole_files import BLOCK, SourceMissing, content, skip

Relation = Literal["same", "beginning", "grown"]
_RELATIONS: tuple[Relation, ...] = ("same", "beginning", "grown")
_HEAD = 4096
_SOUGHT = 1 << 16
"""Bytes at the beginning of a log that are looked for within others, at most."""
_MOMENT = re.compile(rb"\d\d:\d\d:\d\d|\b\d{10}\b")
"""A time of day, or seconds since 1970."""


@dataclass(frozen=True, kw_only=True)
class Known:
    """A landed copy of a log.

    Args:
        copy: The landed file.
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
    """A landed log that begins within another one.

    Args:
        copy: The landed file.
        at: Where it begins in the other one, decompressed.
    """

    copy: Path
    at: int


def landed_logs(folder: Path) -> list[Path]:
    """List the landed logs in a folder, by name; links that lead out of the landing zone are none."""
    found = sorted(folder.iterdir()) if folder.is_dir() else []
    return [path for path in found if path.name[0] not in "_." and is_there(path)]


def is_there(path: Path) -> bool:
    """Return whether a path in the landing zone is a file with content, and no link that leads out of the zone."""
    return path.is_file() and leading_out(path, path.parent.parent) is None and path.stat().st_size > 0


def find(log: Path, copies: Iterable[Path]) -> Known | None:
    """Find the landed copy of a log; a damaged file is a copy of none, and has none.

    Args:
        log: The log.
        copies: Landed logs.

    Returns:
        The copy that has all of the log if there is one; otherwise the longest that is its beginning, because earlier
        releases made several; otherwise one that the log begins within. None if the log has not landed.
    """
    begin, landed = _head(log), list(copies)
    near = [copy for copy in landed if (head := _head(copy)).startswith(begin) or begin.startswith(head)]
    found = [known for copy in near if begin and (known := _compared(log, copy)) is not None]
    if found:
        return min(found, key=lambda known: (_RELATIONS.index(known.relation), -known.bytes))
    head = _lines(log)
    places = (_compared(log, copy, at) for copy in landed for _, at in _places([head], copy))
    return next((known for known in places if known is not None and _tells(head[: known.bytes])), None)


def repeated(log: Path, copies: Iterable[Path], *, behind: int) -> Repeated | None:
    """Find a landed log that begins within a log, such as in one that was put together of several.

    Args:
        log: The log.
        copies: Landed logs.
        behind: Only what begins here or later counts, decompressed.
    """
    landed = list(copies)
    heads = [_lines(copy) for copy in landed]
    for number, at in _places(heads, log, behind):
        known = _compared(landed[number], log, at)
        if known is not None and _tells(heads[number][: known.bytes]):
            return Repeated(copy=landed[number], at=at)
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


def _lines(log: Path) -> bytes:
    """Read the whole lines at the beginning of a log."""
    head = _head(log, _SOUGHT)
    return head[: head.rfind(b"\n") + 1]


def _tells(lines: bytes) -> bool:
    """Return whether lines can be known again: those of one second may be logged twice, around a rotation."""
    moments = (_MOMENT.search(line) for line in lines.splitlines())
    return len({moment[0] for moment in moments if moment}) > 1


def _places(heads: Sequence[bytes], log: Path, behind: int = 0) -> Iterator[tuple[int, int]]:
    """Find where a log goes on with a head, or with as much of it as is left; not at its first line.

    Yields:
        The number of the head, and the place.
    """
    needles = {number: b"\n" + head for number, head in enumerate(heads) if _tells(head)}
    longest = max(map(len, needles.values()), default=0)
    window, begin = b"", max(behind - 1, 0)
    try:
        with content(log) as file:
            skip(file, begin)
            while needles and (block := file.read(BLOCK)):
                seen, window = len(window), window + block
                for number, needle in needles.items():
                    at = window.find(needle, max(seen - len(needle) + 1, 0))
                    while at >= 0:
                        yield number, begin + at + 1
                        at = window.find(needle, at + 1)
                begin, window = begin + max(len(window) - longest, 0), window[-longest:]
    except (SourceMissing, *DAMAGED):
        return
    at = window.find(b"\n")
    while 0 <= at < len(window) - 1:
        rest = window[at:]
        yield from ((number, begin + at + 1) for number, needle in needles.items() if needle.startswith(rest))
        at = window.find(b"\n", at + 1)
