"""Lag Detector: notices that a reader falls behind what it reads, before its figures are old.

Problem: a producer delivers more than before, or a reader is not run; no job fails, and the reader works on data of an
hour ago.
How it works: each source of offsets (:class:`Offsets`) lists how far the reader is behind in each partition: in units
of the source (Delta versions, files or landed partitions), and since when the oldest unread unit is there.
:func:`detect` takes the maximum and the 95th percentile over the partitions: the reader lags if the maximum is above
the bound.
The trap: an average hides the one partition that stands still. And a maximum alone does not tell a slow reader from one
partition with too much data; the percentile does, and the reading has both. Readers that run in batches are behind
between two runs as a matter of course, so the bound is the promised delay, and periods that wait for their end are not
counted.
When not to use it: where no one has promised anything, a distance has no bound.
Source: Data Engineering Design Patterns, ch. 10.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from blogdata.errors.remedies import Remedy
from blogdata.watch.reading import LAG, QUIET, Reading, first, span, unknown

BEHIND = "behind"


@dataclass(frozen=True, kw_only=True)
class Position:
    """How far a reader is behind in one partition of its input, since when; None if nothing is unread."""

    partition: str
    behind: int
    since: datetime | None


@dataclass(frozen=True, kw_only=True)
class Offsets:
    """How far a reader is behind in one of its inputs, in units such as `versions`, and how it is made to read on."""

    unit: str
    remedy: Remedy
    positions: Sequence[Position]


def detect(dataset: str, sources: Iterable[Offsets], *, within: timedelta, now: datetime) -> Reading:
    """Compare the distance of a reader to its inputs with the bound; the input with the longest wait counts."""
    measured = [(_waits(source, now), source) for source in sources]
    if not measured:
        return unknown(LAG, dataset, "none of its inputs can be measured yet")
    waits, source = max(measured, key=lambda item: max(item[0], default=0.0))
    longest, bound = max(waits, default=0.0), within.total_seconds()
    # The smallest wait that at least 95 % of the partitions do not exceed (nearest rank).
    p95 = waits[-(-len(waits) * 95 // 100) - 1] if waits else 0.0
    behind = sum(position.behind for position in source.positions)
    waiting = sorted((at.since, at.partition) for at in source.positions if at.since is not None)
    partitions = [partition for _, partition in waiting]
    lags = longest > bound
    where = partitions[0] if len(partitions) == 1 else f"{len(partitions)} partitions: {first(partitions)}"
    what = (
        f"{behind} {source.unit} are not read ({where}); the oldest waits for {span(longest)}, "
        f"95 % of the partitions for at most {span(p95)}; {span(bound)} are promised"
    )
    return Reading(
        detector=LAG,
        dataset=dataset,
        value=longest,
        bound=bound,
        verdict=BEHIND if lags else QUIET,
        what=what if lags else "",
        remedy=source.remedy,
        partitions=partitions,
        figures={"behind": behind, "p95": p95},
    )


def _waits(source: Offsets, now: datetime) -> list[float]:
    """Measure how long the oldest unread unit of each partition waits, in order; 0 where nothing is unread."""
    since = (position.since for position in source.positions)
    return sorted(0.0 if at is None else max(0.0, (now - at).total_seconds()) for at in since)
