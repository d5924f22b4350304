"""Sources of offsets for the Lag Detector: versions of the tables above, landed partitions, and files of a stream."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Set
from datetime import datetime, timezone
from functools import cache
from pathlib import Path

from blogdata.errors.remedies import Remedy, Run, RunStream
from blogdata.lake.commit import WHOLE_TABLE
from blogdata.patterns.error_management.checkpointer import Checkpoint, checkpoints
from blogdata.patterns.ingestion.landed_partition import LandedPartition
from blogdata.patterns.observability.lag_detector import Offsets, Position
from blogdata.planning.observed import Observed, StreamedInput
from blogdata.planning.reach import Landed, Within, not_published
from blogdata.planning.snapshot import Snapshot
from blogdata.planning.staleness import Scope, Staleness
from blogdata.publish.contract import Contract, Edge, Read

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

    found = []
    for key in sorted(ready & read.reach.behind(look, edge).keys()):
        seen = published[key].inputs.get(edge.above, -1) if key in published else -1
        newest = history[max(bisect_right(versions, seen), len(history) - _EXAMINED) :]
        # Some versions concern a partition by more than their own partitions; the newest one is unread then.
        unread = [entry for entry in newest if key in readers(entry.partition)] or newest[-1:]
        times = [entry.committed_at for entry in unread if entry.committed_at is not None]
        # A period that runs when all of its parts are there has waited since the last of them.
        waits_for_last = seen < 0 and isinstance(read.reach, Within)
        since = max(times, default=None) if waits_for_last else min(times, default=None)
        found.append(Position(partition=key, behind=len({entry.version for entry in unread}), since=since))
    return Offsets(unit=f"versions of {edge.above}", remedy=_RUN, positions=found)


def _of_landed(look: Snapshot, landed: Landed, reader: Contract, ready: Set[str]) -> Offsets:
    """Return the complete landed partitions that a dataset has not ingested, each since it was complete."""
    there = look.landed(landed.table, landed.grain)
    if reader.partitioning is None:
        unread = there[-1:] if WHOLE_TABLE in ready else []
    else:
        lacking = {one.key for one in not_published(there, look.published(reader.dataset))}
        unread = [one for one in there if one.key in lacking and one.key in ready]
    found = [Position(partition=one.key, behind=1, since=complete_since(one)) for one in unread]
    return Offsets(unit=f"landed partitions of {landed.table}", remedy=_RUN, positions=found)


def _of_stream(stream: StreamedInput, checkpoint: Checkpoint, landing: Path) -> Offsets:
    """Return the folders with files that no batch of a stream contains, each since the oldest of these was written."""
    since: dict[str, list[datetime]] = {}
    for file in stream.source.unread(checkpoint, landing):
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
            used = [one for one in checkpoints(stream.checkpoints, stream.name) if one.identity]
            return [_of_stream(stream, one, look.zone.folder) for one in used[-1:]]
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
    """Return when a landed partition was complete: its flag was written or, without one, its newest file."""
    newest = max((file.mtime_ns for file in partition.files), default=None)
    at = newest if partition.flag is None else partition.flag.mtime_ns
    return None if at is None else datetime.fromtimestamp(at / 1e9, timezone.utc)
