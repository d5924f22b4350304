"""The detectors of a deployment: each dataset's readings, from its recorded metadata and without Spark.

The declaration is `watch` on the contract. Checks, events and findings show the same readings, so they never disagree.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from datetime import datetime, timedelta, timezone
from functools import cache
from pathlib import Path
from types import MappingProxyType

from blogdata.contract.contract import Contract, Edge, Read
from blogdata.contract.partitions import Grain, key_of, start_of
from blogdata.contract.publication import WHOLE_TABLE, Entry
from blogdata.contract.schedule import On
from blogdata.contract.watch import Layer
from blogdata.errors.finding import Finding, Severity
from blogdata.errors.remedies import Remedy, Run, RunStream
from blogdata.landing.readiness_marker import LandedPartition
from blogdata.patterns.error_management.checkpointer import Checkpoint, checkpoints
from blogdata.planning.reach import EventsOf, Landed, Same, Within, landed_input, not_published
from blogdata.planning.snapshot import Observed, Snapshot, StreamedInput
from blogdata.planning.staleness import Scope, Staleness
from blogdata.table import arrow
from blogdata.table.lake import Lake
from blogdata.watch import flow_interruption_detector, lag_detector, skew_detector, sla_misses_detector
from blogdata.watch.lag_detector import Offsets, Position
from blogdata.watch.reading import FLOW, LAG, SKEW, SLA, Reading, unknown
from blogdata.watch.sla_misses_detector import INPUT_LATE, JOB_LATE, Delivery

_EXAMINED = 200
"""How many unread publications are examined, the newest ones first; a reader behind by more lags in any case."""
_RUN = Remedy("see whether anything runs it, then: ", Run())


def _of_table(look: Snapshot, edge: Edge, read: Read, ready: Set[str]) -> Offsets:
    """Return the versions of a table that a reader has not read; partitions that may not run yet are not behind."""
    published, history = look.published(edge.below.dataset), look.history(edge.above)
    versions = [entry.version for entry in history]

    # Thousands of partitions may be behind by the same publications.
    @cache
    def readers(partition: str) -> frozenset[str]:
        return frozenset(read.reach.reached(look, edge, {edge.above: {partition: ""}}, {}))

    positions = []
    for key in sorted(ready & read.reach.behind(look, edge).keys()):
        seen = published[key].inputs.get(edge.above, -1) if key in published else -1
        newest = history[max(bisect_right(versions, seen), len(history) - _EXAMINED) :]
        # Some versions concern a partition by more than their own partitions; the newest one is unread then.
        unread = [entry for entry in newest if key in readers(entry.partition)] or newest[-1:]
        times = [entry.committed_at for entry in unread if entry.committed_at is not None]
        # A period that runs when all of its parts are there has waited since the last of them.
        waits_for_last = seen < 0 and isinstance(read.reach, Within)
        since = max(times, default=None) if waits_for_last else min(times, default=None)
        positions.append(Position(partition=key, behind=len({entry.version for entry in unread}), since=since))
    return Offsets(unit=f"versions of {edge.above}", remedy=_RUN, positions=positions)


def _of_landed(look: Snapshot, landed: Landed, reader: Contract, ready: Set[str]) -> Offsets:
    """Return the complete landed partitions that a dataset has not ingested, each since it was complete."""
    complete = look.landed(landed.table, landed.grain)
    if reader.partitioning is None:
        unread = complete[-1:] if WHOLE_TABLE in ready else []
    else:
        lacking = {part.key for part in not_published(complete, look.published(reader.dataset))}
        unread = [part for part in complete if part.key in lacking and part.key in ready]
    positions = [Position(partition=part.key, behind=1, since=complete_since(part)) for part in unread]
    return Offsets(unit=f"landed partitions of {landed.table}", remedy=_RUN, positions=positions)


def _of_stream(stream: StreamedInput, checkpoint: Checkpoint, landing: Path) -> Offsets:
    """Return the folders with files that no batch of a stream contains, each since the oldest of these was written."""
    since: dict[str, list[datetime]] = {}
    for file in stream.source.unread(checkpoint.finished(), landing):
        folder = str(file.parent.relative_to(landing / stream.source.table))
        since.setdefault(folder, []).append(datetime.fromtimestamp(file.stat().st_mtime, timezone.utc))
    return Offsets(
        unit=f"files of {stream.source.table}",
        remedy=Remedy("see whether the stream runs, then: ", RunStream(name=stream.name)),
        positions=[
            Position(partition=key, behind=len(times), since=min(times)) for key, times in sorted(since.items())
        ],
    )


def sources(deployment: Observed, contract: Contract) -> list[Offsets]:
    """List the inputs of a dataset whose offsets are known; a stream without a checkpoint was never started."""
    graph, look = deployment.graph, deployment.look
    for stream in deployment.streams:
        if contract.dataset == next(iter(stream.contracts)):
            used = [checkpoint for checkpoint in checkpoints(stream.checkpoints, stream.name) if checkpoint.identity]
            return [_of_stream(stream, checkpoint, look.zone.folder) for checkpoint in used[-1:]]
    if contract.dataset not in graph.contracts:
        return []
    task = graph.task_of(contract.dataset)
    ready = Staleness(graph=graph, look=look, scope=Scope.READY).stale(task).keys()
    return [
        _of_landed(look, read.reach, contract, ready)
        if isinstance(read.reach, Landed)
        else _of_table(look, edge, read, ready)
        for edge, read in graph.edges(task)
        if edge.below.dataset == contract.dataset != edge.above
    ]


def complete_since(partition: LandedPartition) -> datetime | None:
    newest = max((file.mtime_ns for file in partition.files), default=None)
    at = newest if partition.flag is None else partition.flag.mtime_ns
    return None if at is None else datetime.fromtimestamp(at / 1e9, timezone.utc)


LATELY = timedelta(days=1)
"""Partitions due within this time are judged; at least the newest one is."""
_INHERITED = {FLOW: {flow_interruption_detector.INTERRUPTED, flow_interruption_detector.ENDED}, SLA: {INPUT_LATE}}
"""Verdicts of a detector that follow from the same detector's verdict on a dataset above."""
_CRITICAL = {flow_interruption_detector.INTERRUPTED, JOB_LATE, INPUT_LATE}


def watched(contracts: Iterable[Contract]) -> Iterator[tuple[Contract, str]]:
    """Yield each contract with the detectors that it declares."""
    for contract in contracts:
        yield from ((contract, name) for name in READERS if getattr(contract.watch, name) is not None)


def readings(deployment: Observed) -> list[Reading]:
    return [READERS[name](deployment, contract) for contract, name in watched(deployment.contracts.values())]


def findings(deployment: Observed) -> Iterator[Finding]:
    """Find what detectors report, once for each cause; the datasets below that it concerns are named."""
    standing = [reading for reading in readings(deployment) if reading.stands]
    for first in standing:
        if any(_follows(deployment, first, other) for other in standing):
            continue
        below = {reading.dataset for reading in standing if _follows(deployment, reading, first)} - {first.dataset}
        yield Finding(
            source=first.detector,
            dataset=first.dataset,
            owner=deployment.contracts[first.dataset].owner,
            severity=Severity.CRITICAL if first.verdict in _CRITICAL else Severity.WARNING,
            what=first.what + (f"; the same below it: {', '.join(sorted(below))}" if below else ""),
            remedy=first.remedy,
        )


def flow(deployment: Observed, contract: Contract) -> Reading:
    spec, now = contract.watch.flow, deployment.now
    assert spec is not None
    if deployment.ended_at is not None:
        return unknown(FLOW, contract.dataset, f"the simulation ended at {deployment.ended_at:%Y-%m-%d %H:%M} UTC")
    lake, landed = deployment.look.events.lake, landed_input(contract)
    if spec.layer is Layer.METADATA:
        came = flow_interruption_detector.published(deployment.look.history(contract.dataset))
    elif spec.layer is Layer.DATA:
        assert spec.event_time is not None
        came = flow_interruption_detector.event_times(_newest_events(lake, contract.dataset, spec.event_time), now)
    else:
        assert landed is not None, f"{contract.dataset} watches what lands, and reads no landed partitions"
        partitions: Sequence[LandedPartition] = deployment.look.zone.scan(landed.table, landed.grain)
        came = flow_interruption_detector.landed(partitions, landed.grain, now)
    length = timedelta(days=1) if contract.grain is None else contract.grain.length
    least = length + (contract.promise or timedelta())
    return flow_interruption_detector.detect(contract.dataset, spec, came, least=least, now=now)


def skew(deployment: Observed, contract: Contract) -> Reading:
    """Read the Skew Detector for the newest day of a dataset's partitions."""
    spec, grain = contract.watch.skew, contract.grain
    assert spec is not None
    assert grain is not None, f"{contract.dataset} has no partitions to compare"
    published = deployment.look.published(contract.dataset)
    complete = {key: entry for key, entry in published.items() if is_complete(contract, entry)}
    newest = sorted(complete)[-max(1, int(timedelta(days=1) / grain.length)) :]
    deviations: list[skew_detector.Deviation] = []
    if spec.tolerance is not None:
        rows = {key: entry.rows_in for key, entry in complete.items()}
        deviations += skew_detector.volumes(rows, newest, grain=grain, tolerance=spec.tolerance)
    if spec.among is not None:
        counts = {key: list(entry.breakdowns.get(spec.among, {}).values()) for key, entry in complete.items()}
        deviations += skew_detector.unevenness(counts, newest)
    return skew_detector.detect(contract.dataset, spec, deviations)


def lag(deployment: Observed, contract: Contract) -> Reading:
    spec = contract.watch.lag
    assert spec is not None
    within = spec.within or contract.promise
    assert within is not None, f"{contract.dataset} watches its lag, and promises nothing"
    return lag_detector.detect(contract.dataset, sources(deployment, contract), within=within, now=deployment.now)


def sla(deployment: Observed, contract: Contract) -> Reading:
    assert contract.promise is not None, f"{contract.dataset} watches its promise, and promises nothing"
    history = deployment.look.history(contract.dataset)
    return sla_misses_detector.detect(
        contract.dataset,
        [] if deployment.ended_at else due_lately(deployment, contract),
        promise=contract.promise,
        now=deployment.now,
        # One commit is one job, whatever it published.
        jobs=list({entry.version: entry.seconds for entry in history}.values()),
    )


def due_lately(deployment: Observed, contract: Contract) -> list[Delivery]:
    """List the partitions that became due lately, in order.

    A partition without input is due only if its producer is regular: it has missed none for a day of hours, or
    for seven partitions. What was due before the dataset was first published is loaded history, and no promise.
    """
    grain, promise = contract.grain, contract.promise
    if grain is None or promise is None:
        return []
    inputs = _inputs(deployment.look, contract, grain)
    first = first_published(deployment.look.history(contract.dataset))
    begun = min(first.values(), default=deployment.now)
    regular = max(7, int(timedelta(days=1) / grain.length))
    judged = int(max(LATELY, grain.length) / grain.length)
    last = start_of(key_of(deployment.now - promise - grain.length, grain), grain)
    deliveries, gapless = [], 0
    for place in range(regular + judged - 1, -1, -1):
        start = last - place * grain.length
        key = key_of(start, grain)
        times = inputs(key)
        known = key in first or any(at is not None for at, _ in times)
        # A partition that is expected and has not come leaves the producer regular: it is what is looked for.
        expected = place < judged and (known or gapless >= regular)
        if expected and start + grain.length + promise >= begun:
            by_deadline = contract.runs.on is On.DEADLINE
            missing = [] if by_deadline else [(None, name) for at, name in times if at is None]
            at, name = max(((at, name) for at, name in times if at is not None), default=(None, ""))
            at, name = missing[0] if missing else (at, name)
            ended, published_at = start + grain.length, first.get(key)
            deliveries.append(
                Delivery(partition=key, ended=ended, input_at=at, published_at=published_at, waits_for=name)
            )
        gapless = gapless + 1 if known or expected else 0
    return deliveries


def first_published(history: Iterable[Entry]) -> dict[str, datetime]:
    first: dict[str, datetime] = {}
    for entry in history:
        if entry.committed_at is not None:
            first.setdefault(entry.partition, entry.committed_at)
    return first


def _inputs(look: Snapshot, contract: Contract, grain: Grain) -> Callable[[str], list[tuple[datetime | None, str]]]:
    """Return a function that lists when each input partition that a partition needs was there, and of what dataset."""
    reads: list[tuple[Read, Mapping[str, datetime | None]]] = []
    for read in contract.reads:
        if isinstance(read.reach, Landed):
            complete = look.landed(read.reach.table, read.reach.grain)
            reads.append((read, {part.key: complete_since(part) for part in complete}))
        elif isinstance(read.reach, Within | Same | EventsOf) and read.dataset != contract.dataset:
            reads.append((read, first_published(look.history(read.dataset))))
    return lambda key: [
        (times.get(part), read.dataset)
        for read, times in reads
        for part in (read.reach.parts(key, grain) if isinstance(read.reach, Within) else [key])
    ]


READERS: Mapping[str, Callable[[Observed, Contract], Reading]] = MappingProxyType(
    {FLOW: flow, SKEW: skew, LAG: lag, SLA: sla}
)
"""Name of each detector to the function that reads it."""


def _follows(deployment: Observed, reading: Reading, cause: Reading) -> bool:
    """Return whether a verdict follows from another one: of the same detector above it, or a flow that has stopped."""
    below = reading.dataset in deployment.graph.downstream([cause.dataset])
    if reading.detector == cause.detector:
        return below and reading.dataset != cause.dataset and reading.verdict in _INHERITED.get(reading.detector, ())
    stopped = cause.detector == FLOW and reading.verdict == INPUT_LATE
    return stopped and (below or reading.dataset == cause.dataset)


def is_complete(contract: Contract, entry: Entry) -> bool:
    return contract.parts is None or int(entry.measures.get("parts") or 0) >= contract.parts


def _newest_events(lake: Lake, dataset: str, column: str) -> Iterator[datetime | None]:
    name = f"max.{column}"
    for part in lake.parts(dataset):
        actions = part.table.get_add_actions(flatten=True)
        if name in actions.column_names:
            for moment in (row[name] for row in arrow.rows_of(actions, [name])):
                yield moment if moment is None or moment.tzinfo else moment.replace(tzinfo=timezone.utc)
