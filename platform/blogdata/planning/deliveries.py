"""What the SLA Misses Detector judges: partitions that became due lately, when their inputs were there, and jobs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from blogdata.evidence.claims import Claims
from blogdata.lake.commit import Entry
from blogdata.patterns.observability.sla_misses_detector import Delivery, Job, Running
from blogdata.planning.observed import Observed
from blogdata.planning.offsets import complete_since
from blogdata.planning.reach import EventsOf, Landed, Same, Within
from blogdata.planning.snapshot import Snapshot
from blogdata.publish.contract import Contract, Read
from blogdata.publish.partitions import key_of, start_of
from blogdata.publish.schedule import On

LATELY = timedelta(days=1)
"""Partitions due within this time are judged; at least the newest one is."""


def due_lately(deployment: Observed, contract: Contract) -> list[Delivery]:
    """List the partitions that became due lately, in order.

    A partition without any input is due only if its producer is regular: none has been missing for a day of hours, or
    for seven partitions. Otherwise nothing may be meant to come. What was due before the dataset was first published is
    history that was loaded, and no promise.
    """
    grain, promise = contract.grain, contract.promise
    if grain is None or promise is None:
        return []
    inputs, first = _Inputs(deployment.look, contract), first_published(deployment.look.history(contract.dataset))
    begun = min(first.values(), default=deployment.now)
    regular = max(7, int(timedelta(days=1) / grain.length))
    judged = int(max(LATELY, grain.length) / grain.length)
    last = start_of(key_of(deployment.now - promise - grain.length, grain), grain)
    found, gapless = [], 0
    for place in range(regular + judged - 1, -1, -1):
        start = last - place * grain.length
        key = key_of(start, grain)
        times = inputs.of(key)
        known = key in first or any(at is not None for at, _ in times)
        # A partition that is expected and has not come leaves the producer regular: it is what is looked for.
        expected = place < judged and (known or gapless >= regular)
        if expected and start + grain.length + promise >= begun:
            by_deadline = contract.runs.on is On.DEADLINE
            missing = [] if by_deadline else [name for at, name in times if at is None]
            at, name = max(((at, name) for at, name in times if at is not None), default=(None, ""))
            found.append(
                Delivery(
                    partition=key,
                    ended=start + grain.length,
                    input_at=None if missing else at,
                    published_at=first.get(key),
                    waits_for=missing[0] if missing else name,
                )
            )
        gapless = gapless + 1 if known or expected else 0
    return found


def jobs(history: Iterable[Entry]) -> list[Job]:
    """List the publications of a dataset as jobs, oldest first; one commit is one job, whatever it published."""
    commits: dict[int, list[Entry]] = {}
    for entry in history:
        commits.setdefault(entry.version, []).append(entry)
    return [
        Job(
            name=min(entry.partition for entry in entries),
            rows=sum(entry.rows_in for entry in entries),
            seconds=entries[0].seconds,
        )
        for _, entries in sorted(commits.items())
    ]


def newest_jobs(history: Iterable[Entry], now: datetime) -> int:
    """Count the publications made lately."""
    return len({one.version for one in history if one.committed_at is not None and one.committed_at > now - LATELY})


def running(deployment: Observed, contract: Contract) -> list[Running]:
    """List the partitions that were claimed and not published since, whether their owner is alive or not."""
    published = deployment.look.published(contract.dataset)
    claims = Claims(deployment.look.events.lake, contract.main, alive=lambda _: True).held()
    return [
        Running(partition=key, since=claim.taken_at)
        for key, claim in sorted(claims.items())
        if key not in published or (published[key].committed_at or claim.taken_at) <= claim.taken_at
    ]


def first_published(history: Iterable[Entry]) -> dict[str, datetime]:
    """Map each partition to the time of its first publication."""
    first: dict[str, datetime] = {}
    for entry in history:
        if entry.committed_at is not None:
            first.setdefault(entry.partition, entry.committed_at)
    return first


class _Inputs:
    """Finds when the inputs of partitions were there."""

    def __init__(self, look: Snapshot, contract: Contract) -> None:
        self._reads: list[tuple[Read, Mapping[str, datetime | None]]] = []
        self._grain = contract.grain
        for read in contract.reads:
            if isinstance(read.reach, Landed):
                there = look.landed(read.reach.table, read.reach.grain)
                self._reads.append((read, {one.key: complete_since(one) for one in there}))
            elif isinstance(read.reach, Within | Same | EventsOf) and read.dataset != contract.dataset:
                self._reads.append((read, first_published(look.history(read.dataset))))

    def of(self, key: str) -> list[tuple[datetime | None, str]]:
        """List the input partitions that a partition cannot do without: when each was there, and of what dataset."""
        assert self._grain is not None
        return [
            (times.get(part), read.dataset)
            for read, times in self._reads
            for part in (read.reach.parts(key, self._grain) if isinstance(read.reach, Within) else [key])
        ]
