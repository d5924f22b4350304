"""Compares a log with the landed ones by their content, decompressed: their names say nothing.

Part of the Passthrough Replicator, whose card explains the reasons.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from patterns.ingestion.landed_formats import DAMAGED
from patterns.ingestion.landed_links import leading_out
from patterns.ingestion.whole_files import BLOCK, SourceMissing, content

Relation = Literal["same", "beginning", "grown"]
_RELATIONS: tuple[Relation, ...] = ("same", "beginning", "grown")
_HEAD = 4096


@dataclass(frozen=True, kw_only=True)
class Known:
    """A landed copy of a log.

    Args:
        copy: The landed file.
        relation: What the log is to it: the `same`, its `beginning`, or `grown`, so that the copy is its beginning.
        bytes: Number of bytes that both have, decompressed.
    """

    copy: Path
    relation: Relation
    bytes: int


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
        releases made several. None if the log has not landed.
    """
    begin = _head(log)
    near = [copy for copy in copies if (head := _head(copy)).startswith(begin) or begin.startswith(head)]
    found = [known for copy in near if begin and (known := _compared(log, copy)) is not None]
    return min(found, key=lambda known: (_RELATIONS.index(known.relation), -known.bytes), default=None)


def _compared(log: Path, copy: Path) -> Known | None:
    common = 0
    try:
        with content(log) as ours, content(copy) as theirs:
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
                return Known(copy=copy, relation=relation, bytes=common)
    except (SourceMissing, *DAMAGED):
        return None


def _head(log: Path) -> bytes:
    """Read the first bytes of a log, which all logs but copies of it differ in; none of one that cannot be read."""
    try:
        with content(log) as file:
            return file.read(_HEAD)
    except (SourceMissing, *DAMAGED):
        return b""
