"""Lag Detector: notices that a reader falls behind what it reads, before its figures are old.

Problem: a producer delivers more than before, or a reader is not run; no job fails, and the reader works on data of an
hour ago.

How it works: each source of offsets (:class:`Offsets`) lists how far the reader is behind in each partition: in units
of the source (Delta versions, files, landed partitions, or records of a broker), and since when the oldest unread unit
is there. :func:`measure` takes the maximum and the percentiles over the partitions. The reader lags (:func:`detect`) if
the maximum is above the bound.

The trap: an average hides the one partition that stands still. And a maximum alone does not tell a slow reader from
one partition with too much data; the percentiles do, and the reading has both. Readers that run in batches are behind
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
from blogdata.patterns.observability.reading import LAG, QUIET, Reading, first, span, unknown

BEHIND = "behind"


@dataclass(frozen=True, kw_only=True)
class Position:
    """How far a reader is behind in one partition of its input, since when; None if nothing is unread."""

    partition: str
    behind: int
    since: datetime | None


@dataclass(frozen=True, kw_only=True)
class Offsets:
    """How far a reader is behind in one of its inputs, by partition.

    Args:
        unit: What is counted, in the plural, such as `versions`.
        remedy: How the reader is made to read on.
    """

    unit: str
    remedy: Remedy
    positions: Sequence[Position]


@dataclass(frozen=True, kw_only=True)
class Distance:
    """How far a reader is behind over all partitions of an input.

    Args:
        longest: Longest wait, seconds.
        p90: Wait that 90 % of the partitions do not exceed, seconds.
    """

    longest: float
    p90: float
    p95: float
    behind: int
    partitions: Sequence[str]


def measure(positions: Iterable[Position], now: datetime) -> Distance:
    """Measure the distance over all partitions, those that are not behind among them."""
    listed = list(positions)
    waits = sorted(0.0 if one.since is None else max(0.0, (now - one.since).total_seconds()) for one in listed)
    waiting = sorted((one.since, one.partition) for one in listed if one.since is not None)
    return Distance(
        longest=waits[-1] if waits else 0.0,
        p90=_percentile(waits, 0.90),
        p95=_percentile(waits, 0.95),
        behind=sum(one.behind for one in listed),
        partitions=[partition for _, partition in waiting],
    )


def detect(dataset: str, sources: Iterable[Offsets], *, within: timedelta, now: datetime) -> Reading:
    """Compare the distance of a reader to its inputs with the bound; the input with the longest wait counts."""
    measured = [(measure(source.positions, now), source) for source in sources]
    if not measured:
        return unknown(LAG, dataset, "none of its inputs can be measured yet")
    distance, source = max(measured, key=lambda one: one[0].longest)
    lags = distance.longest > within.total_seconds()
    return Reading(
        detector=LAG,
        dataset=dataset,
        value=distance.longest,
        bound=within.total_seconds(),
        verdict=BEHIND if lags else QUIET,
        what=_what(distance, source, within) if lags else "",
        remedy=source.remedy,
        partitions=distance.partitions,
        figures={"behind": distance.behind, "p90": distance.p90, "p95": distance.p95},
    )


def _what(distance: Distance, source: Offsets, within: timedelta) -> str:
    count = len(distance.partitions)
    where = distance.partitions[0] if count == 1 else f"{count} partitions: {first(distance.partitions)}"
    return (
        f"{distance.behind} {source.unit} are not read ({where}); the oldest waits for {span(distance.longest)}, "
        f"95 % of the partitions for at most {span(distance.p95)}; {span(within.total_seconds())} are promised"
    )


def _percentile(ordered: Sequence[float], share: float) -> float:
    """Return the smallest value that at least this share of the values does not exceed (nearest rank)."""
    if not ordered:
        return 0.0
    rank = -(-len(ordered) * round(share * 100) // 100)
    return ordered[max(rank, 1) - 1]
