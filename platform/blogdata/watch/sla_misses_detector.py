"""SLA Misses Detector: notices partitions later than promised, and tells a slow job from a late input.

Problem: a job that succeeds two hours late has failed its readers, and whoever looks for the cause must know whether
the job was slow or its producer was late.
How it works: a partition is due a promised time after its end (:func:`detect`). Two spans are measured
(:class:`Delivery`): event time, from the end of the partition to its first publication; and processing time, from when
its input was there. If the partition is late though a job of usual duration could have made it, or processing alone
took longer than the promise, our job was late. Otherwise the input was.
The trap: in a chain of jobs a delay above makes all of them late, if each is measured from the start of the chain. Here
each job's own time begins when its inputs were there, and a late input names the dataset it comes from. The first
publication counts: late rows that publish an hour again do not make it late.
When not to use it: for a stream, which has no partitions that end (Lag Detector). Partitions due more than a day ago
are not judged: nobody can make up for them, and simulated or backfilled data are no misses.
Source: Data Engineering Design Patterns, ch. 10.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from statistics import median

from blogdata.errors.remedies import Remedy, Run
from blogdata.watch.reading import SLA, Reading, first, span, unknown

JOB_LATE = "job late"
INPUT_LATE = "input late"
LEAST_JOBS = 8
"""Jobs below which the usual duration is unknown."""


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """A partition that is due, or was published."""

    partition: str
    ended: datetime
    input_at: datetime | None
    """When the last of its inputs was there; None: one is not."""
    published_at: datetime | None
    """When it was first published; None: it is not."""
    waits_for: str


def detect(
    dataset: str, deliveries: Sequence[Delivery], *, promise: timedelta, now: datetime, jobs: Sequence[float] = ()
) -> Reading:
    """Return the worst kind of what is later than promised; `jobs`: seconds that each publication so far took."""
    if not deliveries and not jobs:
        return unknown(SLA, dataset, "no partition has become due lately")
    usual = timedelta(seconds=median(jobs) if len(jobs) >= LEAST_JOBS else 0.0)
    misses = [(miss, ours) for miss in deliveries if (ours := _is_ours(miss, promise, usual, now)) is not None]
    is_ours = any(ours for _, ours in misses)
    alike = [miss for miss, ours in misses if ours == is_ours]
    worst = max(alike or deliveries, key=lambda delivery: (delivery.published_at or now) - delivery.ended, default=None)
    value = 0.0 if worst is None else ((worst.published_at or now) - worst.ended).total_seconds()
    reading = Reading(detector=SLA, dataset=dataset, value=value, bound=promise.total_seconds())
    if worst is None or not misses:
        return reading
    processing = _processing(worst, now).total_seconds()
    late = span(max(reading.value, processing) - reading.bound)
    state = "was published" if worst.published_at else "is not published"
    came = f"came at {worst.input_at:%Y-%m-%d %H:%M} UTC" if worst.input_at else "has not come"
    cause = f"its input was there {span(processing)} before" if is_ours else f"{worst.waits_for} {came}"
    partitions = sorted(miss.partition for miss in alike)
    others = "" if len(partitions) == 1 else f"; {len(partitions)} of this kind: {first(partitions)}"
    by_itself = Remedy("ask the owner of the input; it is computed by itself once the input is there")
    return replace(
        reading,
        verdict=JOB_LATE if is_ours else INPUT_LATE,
        what=f"{worst.partition} {state} {late} after the promise; {cause}{others}",
        remedy=Remedy("see whether anything runs it, then: ", Run(datasets=(dataset,))) if is_ours else by_itself,
        partitions=partitions,
    )


def _processing(late: Delivery, now: datetime) -> timedelta:
    return timedelta() if late.input_at is None else (late.published_at or now) - max(late.input_at, late.ended)


def _is_ours(late: Delivery, promise: timedelta, usual: timedelta, now: datetime) -> bool | None:
    """Return whether our job was late, and not the input; None if neither was."""
    due, processing = late.ended + promise, _processing(late, now)
    if (late.published_at or now) <= due and processing <= promise:
        return None
    return late.input_at is not None and (processing > promise or late.input_at + usual <= due)
