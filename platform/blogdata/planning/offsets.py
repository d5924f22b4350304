"""Sources of offsets for the Lag Detector: versions of the tables above, landed partitions, and files of a stream."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cache
from pathlib import Path

from blogdata.errors.remedies import Remedy, Run, RunStream
from blogdata.lake.commit import WHOLE_TABLE
from blogdata.patterns.error_management.checkpointer import Checkpoint, checkpoints
from blogdata.patterns.ingestion.landed_partition import LandedPartition
from blogdata.patterns.observability.lag_detector import Offsets, Position
from blogdata.planning.graph import Task
from blogdata.planning.observed import Observed, StreamedInput
from blogdata.planning.reach import Landed, Within, not_published
from blogdata.planning.snapshot import Snapshot
from blogdata.planning.staleness import Scope, Staleness
from blogdata.publish.contract import Contract, Edge, Read

_EXAMINED = 200
"""How many unread publications are examined, the newest ones first; a reader behind by more lags in any case."""


@dataclass(frozen=True, kw_only=True)
class TableOffsets:
    """The versions of a table that a reader has not read; partitions that may not run yet are not behind."""

    look: Snapshot
    edge: Edge
    read: Read
    ready: frozenset[str]

    @property
    def unit(self) -> str:
        """What is counted."""
        return f"versions of {self.edge.above}"

    @property
    def remedy(self) -> Remedy:
        """How the reader is made to read on."""
        return Remedy("see whether anything runs it, then: ", Run())

    def positions(self) -> Sequence[Position]:
        """List the partitions of the reader with unread versions."""
        published = self.look.published(self.edge.below.dataset)
        history = self.look.history(self.edge.above)
        versions = [entry.version for entry in history]
        # Thousands of partitions may be behind by the same publications.
        readers = cache(self._readers)
        found = []
        for key in sorted(self.ready & self.read.reach.behind(self.look, self.edge).keys()):
            seen = published[key].inputs.get(self.edge.above, -1) if key in published else -1
            newest = history[max(bisect_right(versions, seen), len(history) - _EXAMINED) :]
            # Some versions concern a partition by more than their own partitions; the newest one is unread then.
            unread = [entry for entry in newest if key in readers(entry.partition)] or newest[-1:]
            times = [entry.committed_at for entry in unread if entry.committed_at is not None]
            # A period that runs when all of its parts are there has waited since the last of them.
            waits_for_last = seen < 0 and isinstance(self.read.reach, Within)
            since = max(times, default=None) if waits_for_last else min(times, default=None)
            found.append(Position(partition=key, behind=len({entry.version for entry in unread}), since=since))
        return found

    def _readers(self, partition: str) -> frozenset[str]:
        return frozenset(self.read.reach.reached(self.look, self.edge, {self.edge.above: {partition: ""}}, {}))


@dataclass(frozen=True, kw_only=True)
class LandedOffsets:
    """The complete landed partitions that a dataset has not ingested."""

    look: Snapshot
    landed: Landed
    reader: Contract
    ready: frozenset[str]

    @property
    def unit(self) -> str:
        """What is counted."""
        return f"landed partitions of {self.landed.table}"

    @property
    def remedy(self) -> Remedy:
        """How the dataset is made to ingest them."""
        return Remedy("see whether anything runs it, then: ", Run())

    def positions(self) -> Sequence[Position]:
        """List the landed partitions that are not ingested, each since it was complete."""
        there = self.look.landed(self.landed.table, self.landed.grain)
        if self.reader.partitioning is None:
            unread = there[-1:] if WHOLE_TABLE in self.ready else []
        else:
            published = self.look.published(self.reader.dataset)
            lacking = {one.key for one in not_published(there, published)} & self.ready
            unread = [one for one in there if one.key in lacking]
        return [Position(partition=one.key, behind=1, since=complete_since(one)) for one in unread]


@dataclass(frozen=True, kw_only=True)
class StreamedOffsets:
    """The landed files that no committed batch of a stream contains."""

    stream: StreamedInput
    checkpoint: Checkpoint
    landing: Path

    @property
    def unit(self) -> str:
        """What is counted."""
        return f"files of {self.stream.source.table}"

    @property
    def remedy(self) -> Remedy:
        """How the stream is made to read on."""
        return Remedy("see whether the stream runs, then: ", RunStream(name=self.stream.name))

    def positions(self) -> Sequence[Position]:
        """List the folders with unread files, each since the oldest of these was written."""
        since: dict[str, list[datetime]] = {}
        for file in self.stream.source.unread(self.checkpoint, self.landing):
            folder = str(file.parent.relative_to(self.landing / self.stream.source.table))
            since.setdefault(folder, []).append(datetime.fromtimestamp(file.stat().st_mtime, timezone.utc))
        return [Position(partition=key, behind=len(times), since=min(times)) for key, times in sorted(since.items())]


def sources(deployment: Observed, contract: Contract) -> list[Offsets]:
    """List the inputs of a dataset whose offsets are known; a stream without a checkpoint was never started."""
    for stream in deployment.streams:
        if contract.dataset == next(iter(stream.contracts)):
            used = [one for one in checkpoints(stream.checkpoints, stream.name) if one.identity]
            landing = deployment.look.zone.folder
            return [StreamedOffsets(stream=stream, checkpoint=one, landing=landing) for one in used[-1:]]
    if contract.dataset not in deployment.graph.contracts:
        return []
    return list(_of_lineage(deployment, deployment.graph.task_of(contract.dataset), contract))


def _of_lineage(deployment: Observed, task: Task, contract: Contract) -> Iterator[Offsets]:
    look = deployment.look
    ready = frozenset(Staleness(graph=deployment.graph, look=look, scope=Scope.READY).stale(task))
    for edge, read in deployment.graph.edges(task):
        if edge.below.dataset != contract.dataset or edge.above == contract.dataset:
            continue
        if isinstance(read.reach, Landed):
            yield LandedOffsets(look=look, landed=read.reach, reader=contract, ready=ready)
        else:
            yield TableOffsets(look=look, edge=edge, read=read, ready=ready)


def complete_since(partition: LandedPartition) -> datetime | None:
    """Return when a landed partition was complete: its flag was written or, without one, its newest file."""
    newest = max((file.mtime_ns for file in partition.files), default=None)
    at = newest if partition.flag is None else partition.flag.mtime_ns
    return None if at is None else datetime.fromtimestamp(at / 1e9, timezone.utc)
