"""SLA Misses Detector: notices partitions later than promised, and tells a slow job from a late input.

Problem: a job that succeeds two hours late has failed its readers, and whoever looks for the cause must know whether
the job was slow or its producer was late.

How it works: a partition is due a promised time after its end (:func:`detect`). Two spans are measured
(:class:`Delivery`): event time, from the end of the partition to its first publication; and processing time, from
when its input was there. If the partition is late though a job of usual duration could have made it, or processing
alone took longer than the promise, our job was late. Otherwise the input was.

The trap: in a chain of jobs a delay above makes all of them late, if each is measured from the start of the chain. Here
each job's own time begins when its inputs were there, and a late input names the dataset it comes from. The first
publication counts: late rows that publish an hour again do not make it late.

When not to use it: for a stream, which has no partitions that end (Lag Detector); for delays within a partition that is
published in time (Late Data Detector). Partitions due more than a day ago are not judged: nobody can make up for them,
and simulated or backfilled data are no misses.

Source: Data Engineering Design Patterns, ch. 10.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median

from blogdata.errors.remedies import Remedy, Run
from blogdata.patterns.observability.reading import SLA, Reading, first, span, unknown

JOB_LATE = "job late"
INPUT_LATE = "input late"
VERDICTS = (JOB_LATE, INPUT_LATE)
"""The verdicts, the worst one first."""
EVENT_TIME, PROCESSING_TIME = "event_time", "processing_time"
"""Figures of a reading: the longest spans until the publication, from the end of the partition, and from its input."""
LEAST_JOBS = 8
"""Jobs below which the usual duration is unknown."""


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """A partition that is due, or was published.

    Args:
        input_at: When the last of its inputs was there; None: one is not.
        published_at: When it was first published; None: it is not.
    """

    partition: str
    ended: datetime
    input_at: datetime | None
    published_at: datetime | None
    waits_for: str


@dataclass(frozen=True, kw_only=True)
class _Miss:
    verdict: str
    partition: str
    seconds: float
    bound: float
    text: str


def detect(
    dataset: str,
    deliveries: Sequence[Delivery],
    *,
    promise: timedelta,
    now: datetime,
    jobs: Sequence[float] = (),
) -> Reading:
    """Return the worst kind of what is later than promised; unknown if nothing can be judged.

    Args:
        jobs: Durations of the publications so far, in seconds.
    """
    usual = median(jobs) if len(jobs) >= LEAST_JOBS else 0.0
    misses = [miss for one in deliveries if (miss := _late(one, promise, usual, now))]
    if not misses:
        if not deliveries and not jobs:
            return unknown(SLA, dataset, "no partition has become due lately")
        spans = _longest(deliveries, now)
        bound = promise.total_seconds()
        return Reading(detector=SLA, dataset=dataset, value=spans[EVENT_TIME], bound=bound, figures=spans)
    verdict = min((miss.verdict for miss in misses), key=VERDICTS.index)
    alike = [miss for miss in misses if miss.verdict == verdict]
    worst = max(alike, key=lambda miss: miss.seconds)
    partitions = sorted(miss.partition for miss in alike)
    others = "" if len(partitions) == 1 else f"; {len(partitions)} of this kind: {first(partitions)}"
    return Reading(
        detector=SLA,
        dataset=dataset,
        value=worst.seconds,
        bound=worst.bound,
        verdict=verdict,
        what=worst.text + others,
        remedy=_remedy(verdict, dataset),
        partitions=partitions,
        figures={
            **{kind.replace(" ", "_"): sum(miss.verdict == kind for miss in misses) for kind in VERDICTS},
            **_longest(deliveries, now),
        },
    )


def _longest(deliveries: Sequence[Delivery], now: datetime) -> dict[str, float]:
    """Return the longest spans of deliveries in seconds, in event time and in processing time."""
    event_times = [((one.published_at or now) - one.ended).total_seconds() for one in deliveries]
    processing_times = [_processing(one, now).total_seconds() for one in deliveries]
    return {EVENT_TIME: max(event_times, default=0.0), PROCESSING_TIME: max(processing_times, default=0.0)}


def _processing(one: Delivery, now: datetime) -> timedelta:
    return timedelta() if one.input_at is None else (one.published_at or now) - max(one.input_at, one.ended)


def _late(one: Delivery, promise: timedelta, usual: float, now: datetime) -> _Miss | None:
    until = one.published_at or now
    due = one.ended + promise
    processing = _processing(one, now)
    if until <= due and processing <= promise:
        return None
    could_have = one.input_at is not None and one.input_at + timedelta(seconds=usual) <= due
    ours = one.input_at is not None and (processing > promise or could_have)
    state = "was published" if one.published_at else "is not published"
    late = span(max(until - due, processing - promise).total_seconds())
    came = f"came at {one.input_at:%Y-%m-%d %H:%M} UTC" if one.input_at else "has not come"
    cause = f"its input was there {span(processing.total_seconds())} before" if ours else f"{one.waits_for} {came}"
    text = f"{one.partition} {state} {late} after the promise; {cause}"
    return _Miss(
        verdict=JOB_LATE if ours else INPUT_LATE,
        partition=one.partition,
        seconds=(until - one.ended).total_seconds(),
        bound=promise.total_seconds(),
        text=text,
    )


def _remedy(verdict: str, dataset: str) -> Remedy:
    if verdict == INPUT_LATE:
        return Remedy("ask the owner of the input; it is computed by itself once the input is there")
    return Remedy("see whether anything runs it, then: ", Run(datasets=(dataset,)))
