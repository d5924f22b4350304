"""Flow Interruption Detector: notices that no data comes any more, though nothing has failed.

Problem: a job runs without an error and writes nothing, or a producer has gone silent; readers find out days later.
How it works: the instants at which data came are read from one of three layers: publications with new rows in the event
log (:func:`published`), newest event times in the file statistics (:func:`event_times`), or files in the landing zone
(:func:`landed`). :func:`detect` compares the silence since the newest instant with a bound. Continuous delivery
declares the bound (`every`). For irregular delivery it is twice the usual pause: the third longest of the last five
weeks, so that nights and weekends are usual and an outage or two are not. This bound is never below the length of a
partition plus its promise.
The trap: not every new file is data. A compaction, a restoration, a publication without rows, a repeated one of the
same rows and an empty flag are none. Files copied into the landing zone at once have the times of the copy; then the
hours in the names of their folders are used instead.
When not to use it: to notice that less data comes than usual (Skew Detector), or that one partition is missing between
others (Readiness Marker). While a dataset has fewer than 20 pauses, its usual pause is unknown and nothing is judged.
Source: Data Engineering Design Patterns, ch. 10.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from itertools import pairwise

from blogdata.contract.partitions import Grain
from blogdata.contract.publication import Entry
from blogdata.contract.watch import Flow, Layer
from blogdata.errors.remedies import Remedy, ShowLedger
from blogdata.landing.readiness_marker import LandedPartition, start_of_key
from blogdata.watch.reading import FLOW, Reading, span, unknown

INTERRUPTED = "interrupted"
ENDED = "ended"
ENDS_AFTER = timedelta(days=30)
"""Silence after which a flow counts as ended, if that is also twice its bound: nobody has to act on it at night."""
MARGIN = 2
"""Silence, as a multiple of the usual pause, above which a flow is interrupted."""
REMEMBERED = timedelta(weeks=5)
"""How far back pauses are remembered: each day of the week occurs five times."""
REPEATED = 3
"""A pause of this length must have occurred so many times to be usual; fewer times while few pauses are known."""
PAUSES_EACH = 100
"""Pauses known for each of these times."""
LEAST_PAUSES = 20
"""Pauses below which the usual one is unknown."""
AT_ONCE = timedelta(minutes=5)
"""Data that come within this time of each other came at once."""


def published(history: Iterable[Entry]) -> list[datetime]:
    """List when new rows were published: not by a repeated publication of the same rows."""
    rows: dict[str, int] = {}
    moments = []
    for entry in history:
        changed = entry.appended or entry.rows_in != rows.get(entry.partition)
        rows[entry.partition] = entry.rows_in
        if changed and entry.rows_in > 0 and entry.committed_at is not None:
            moments.append(entry.committed_at)
    return sorted(moments)


def event_times(newest: Iterable[datetime | None], now: datetime) -> list[datetime]:
    """List the newest event times of files; times in the future come from wrong clocks and are left out."""
    return sorted(time for time in newest if time is not None and time <= now)


def landed(partitions: Iterable[LandedPartition], grain: Grain, now: datetime) -> list[datetime]:
    """List when data landed: when files were written or, if they were copied at once, the ends of their partitions."""
    written, ends = [], []
    for partition in partitions:
        start = start_of_key(partition.key, grain)
        if start is None or start > now or not partition.files:
            continue
        at = min(file.mtime_ns for file in partition.files) / 1e9
        written.append(datetime.fromtimestamp(at, timezone.utc))
        ends.append(min(start + grain.length, now))
    return sorted(written if len(_pauses(sorted(written))) >= LEAST_PAUSES else ends)


def detect(dataset: str, spec: Flow, came: Sequence[datetime], *, least: timedelta, now: datetime) -> Reading:
    """Compare the silence of a dataset with its bound; unknown if no data ever came, or too few pauses are known."""
    came = came[: bisect_right(came, now)]
    if not came:
        return unknown(FLOW, dataset, "no data has come yet")
    bound = spec.every
    if bound is None:
        pauses = _pauses(came[bisect_left(came, came[-1] - REMEMBERED) :])
        if len(pauses) < LEAST_PAUSES:
            return unknown(FLOW, dataset, f"{len(pauses)} pauses are known, {LEAST_PAUSES} are needed")
        repeated = min(REPEATED, 1 + len(pauses) // PAUSES_EACH)
        bound = max(least, MARGIN * heapq.nlargest(repeated, pauses)[-1])
    silence, most = (now - came[-1]).total_seconds(), bound.total_seconds()
    reading = Reading(detector=FLOW, dataset=dataset, value=silence, bound=most)
    if silence <= most:
        return reading
    ended = silence > max(ENDS_AFTER.total_seconds(), 2 * most)
    where = {"metadata": "no new rows were published", "data": "no newer event came", "storage": "no data came"}
    return replace(
        reading,
        verdict=ENDED if ended else INTERRUPTED,
        what=f"{where[spec.layer.value]} since {came[-1]:%Y-%m-%d %H:%M} UTC, for {span(silence)}; "
        + ("it has ended, it seems" if ended else f"at most {span(most)} are usual"),
        remedy=_remedy(dataset, spec.layer),
    )


def _remedy(dataset: str, layer: Layer) -> Remedy:
    if layer is Layer.STORAGE:
        return Remedy("ask the producer whether it has stopped")
    return Remedy("see which partitions are published, and what waits to be: ", ShowLedger(dataset=dataset))


def _pauses(came: Sequence[datetime]) -> list[timedelta]:
    return [pause for earlier, later in pairwise(came) if (pause := later - earlier) > AT_ONCE]
