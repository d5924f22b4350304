"""Keeps published lines from vanishing with their files: an hour that lost lines waits until a person accepts it.

Problem: a partition is computed again from what has landed *now*. If a file was removed or cut off meanwhile, its
published rows vanish, and every account adds up: there are as many rows as landed lines.
How it works: when the files of a published partition have changed, the lines of each file are compared with its
published rows. A file that is gone or has fewer lines is explained if

- the lines that it lacks are in other files of the partition, that were not published: it was renamed, split, joined
  with others or compressed;
- it is a correction, and another one for the same dead letter is there;
- it was the begin of a line of an access log, and has made way for the whole line, in this hour or in a later one;
- none of the producer's published files is there any more, and the new ones have at least as many lines: the producer
  delivered the whole partition anew.

Otherwise the partition keeps its published rows. A file that has as many lines as before may have other ones: that is a
correction of its producer. A partition whose folder is gone is not read at all, and stays published.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from blogdata.errors import PlatformError
from blogdata.errors.remedies import Remedy, Run
from blogdata.landing.full_loader import ACCEPT_SIZE
from blogdata.landing.lines import REPLAY_PREFIX, faults_of, kept_lines
from blogdata.landing.log_splitter import PART, UNENDED

_NAMED = 3
_STEM = len(REPLAY_PREFIX) + 16
"""Length of the beginning that the names of all corrections of one dead letter have in common."""


class Line(NamedTuple):
    """A line, in memory: its file (relative to the landing zone), its byte offset there, and its bytes."""

    file: str
    offset: int
    raw: bytes


def landed_lines(files: Iterable[Path], root: Path) -> Iterator[Line]:
    """Read the lines of landed files, plain or compressed, but for those that were erased."""
    for file in files:
        name = str(file.relative_to(root))
        with faults_of(file):
            yield from (Line(name, offset, raw) for offset, raw in kept_lines(file))


@dataclass(frozen=True, kw_only=True)
class Loss:
    partition: str
    files: tuple[str, ...]
    lines: int

    def __str__(self) -> str:
        return f"{self.partition} ({self.lines} of {_some(list(map(_name, self.files)), ', ')})"


def loss(
    partition: str,
    published: Mapping[str, int],
    landed: Mapping[str, int],
    *,
    published_lines: Callable[[], Iterable[Line]],
    landed_lines: Callable[[], Iterable[Line]],
) -> Loss | None:
    """Find out what a partition lost since it was published; None if nothing, or if a file explains it."""
    fewer = (file for file, lines in published.items() if landed.get(file, 0) < lines)
    lacking = sorted(file for file in fewer if not _is_replaced(file, landed))
    if not lacking or _is_delivered_anew(published, landed):
        return None
    lines = _vanished(lacking, published_lines(), landed_lines())
    return Loss(partition=partition, files=tuple(lacking), lines=lines) if lines else None


def refusal(losses: Collection[Loss], *, where: str) -> PlatformError:
    error = PlatformError(
        what=f"published lines are in no landed file any more: {_some(list(map(str, losses)), '; ')}",
        where=where,
        next_step=Remedy(
            "what was published stays; bring the files back, or if the lines are to go: ", Run(accept=ACCEPT_SIZE)
        ),
    )
    error.partitions = frozenset(loss.partition for loss in losses)
    return error


def _vanished(lacking: Collection[str], published: Iterable[Line], landed: Iterable[Line]) -> int:
    """Count the published lines of some files that no landed file has, beyond those of the other published files."""
    free = Counter(hash(line.raw) for line in landed)
    wanted: Counter[int] = Counter()
    for line in published:
        if line.file in lacking:
            wanted[hash(line.raw)] += 1
        else:
            free[hash(line.raw)] -= 1
    return sum(max(0, count - max(0, free[line])) for line, count in wanted.items())


def _is_replaced(file: str, landed: Collection[str]) -> bool:
    name = _name(file)
    if re.fullmatch(PART, name):
        return file not in landed and name.endswith(UNENDED)
    return name.startswith(REPLAY_PREFIX) and any(_name(other)[:_STEM] == name[:_STEM] for other in landed)


def _is_delivered_anew(published: Mapping[str, int], landed: Mapping[str, int]) -> bool:
    before, now = (
        {file for file in files if not _name(file).startswith(REPLAY_PREFIX)} for files in (published, landed)
    )
    return not before & now and sum(landed.values()) >= sum(published.values())


def _some(names: Sequence[str], between: str) -> str:
    return between.join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")


def _name(file: str) -> str:
    return file.rpartition("/")[2]
