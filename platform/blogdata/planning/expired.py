"""Which partitions have to leave their tables, and which can no longer be computed because rows have left.

A dataset keeps a partition for the `retention_days` of its contract, counted from the partition's end. What left is
recorded as `expired` in the event log, beside the publication, which stays: so no reader of the partition becomes
stale. A partition is never computed again if it has expired itself, or if a partition that it reads has: it would be
published without the rows that are gone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path

from blogdata.contract.contract import Contract, Edge, Look, Read
from blogdata.contract.partitions import Grain, coarser, following, start_of
from blogdata.contract.writes import ByPeriod, Replace
from blogdata.errors import PlatformError
from blogdata.errors.remedies import Remedy, ShowLedger
from blogdata.landing import readiness_marker
from blogdata.landing.readiness_marker import LandedPartition
from blogdata.patterns.error_management.checkpointer import checkpoints
from blogdata.planning.clock import is_key
from blogdata.planning.graph import Graph, Task
from blogdata.planning.reach import Whole, Within, landed_input
from blogdata.planning.reaches import EventsWithin
from blogdata.planning.snapshot import Snapshot, StreamedInput


class PartitionExpired(PlatformError):
    """A partition cannot be computed again: it has expired, or one that it reads."""


def over(look: Snapshot, graph: Graph, task: Task, now: datetime) -> tuple[str, ...]:
    """Find the partitions of a task whose retention has ended and whose rows are still in its tables, in order."""
    contract = task.contracts[0]
    if not expires(contract, graph):
        return ()
    kept = {of.retention_days for of in task.contracts}
    assert len(kept) == 1, f"{', '.join(task.datasets)} appear together: give them the same retention_days"
    assert contract.partitioning is not None
    grain, published = contract.partitioning.grain, look.published(contract.dataset)
    oldest = now - grain.length - timedelta(days=contract.retention_days)
    ended = [key for key in published if is_key(key, grain) and start_of(key, grain) <= oldest]
    # After a restoration the table has rows of expired partitions.
    rows = look.events.lake.row_counts(contract.dataset, contract.partition_column, partitions=ended) if ended else {}
    return tuple(sorted(key for key in ended if published[key].expired is None or rows.get(key)))


def expires(contract: Contract, graph: Graph) -> bool:
    """Return whether partitions leave a dataset: not one from which a table is derived whole, which would lose them."""
    if contract.partitioning is None or not isinstance(contract.write, Replace | ByPeriod):
        return False
    return not any(
        read.dataset == contract.dataset and isinstance(read.reach, Whole) and isinstance(other.write, Replace)
        for other in graph.contracts.values()
        for read in other.reads
    )


def refusals(look: Look, graph: Graph, task: Task, keys: Collection[str]) -> dict[str, PartitionExpired]:
    expired = {key for contract in task.contracts for key in _expired(look, contract.dataset)}
    errors = {
        key: _refusal(task.main, key, f"{key} has expired: its rows have left the table")
        for key in keys
        if key in expired
    }
    for edge, read in graph.edges(task):
        above = graph.contracts.get(edge.above)
        # Other tables are not read for it: they have no partitions that expire.
        gone = _expired(look, edge.above) if above is not None and above.partitioning is not None else {}
        readers = _readers(look, edge, read, gone) if gone else {}
        for key in readers.keys() & set(keys) - errors.keys():
            what = f"{key} stays as it is: {edge.above} {readers[key]}, which it is computed from, has expired"
            errors[key] = _refusal(task.main, key, what)
    return errors


def _expired(look: Look, dataset: str) -> dict[str, str]:
    return {key: key for key, entry in look.published(dataset).items() if entry.expired is not None}


def _readers(look: Look, edge: Edge, read: Read, gone: Mapping[str, str]) -> Mapping[str, str]:
    grain = edge.below.grain
    if grain is None:
        return {}
    if edge.above == edge.below.dataset:
        # A dataset that reads itself continues from the partition before.
        return {following(key, grain): key for key in gone}
    if isinstance(read.reach, Within) and not isinstance(read.reach, EventsWithin):
        return {coarser(key, Grain.HOUR, grain): key for key in gone}
    return read.reach.reached(look, edge, {edge.above: gone}, {})


def _refusal(dataset: str, key: str, what: str) -> PartitionExpired:
    error = PartitionExpired(
        what=what,
        where=dataset,
        next_step=Remedy(
            "choose later partitions; what is kept: ",
            ShowLedger(dataset=dataset),
            "; for how long is in the contracts (retention_days)",
        ),
    )
    error.partitions = frozenset({key})
    return error


def landed_over(look: Snapshot, graph: Graph, streams: Sequence[StreamedInput]) -> list[LandedPartition]:
    """Find the landed partitions that no dataset needs any more: what was published of them has expired.

    One whose files have changed since stays, and so does one with files that a stream that ever ran has not read yet.
    """
    readers: dict[tuple[str, Grain], list[Contract]] = {}
    for contract in graph.contracts.values():
        if (source := landed_input(contract)) is not None:
            readers.setdefault((source.table, source.grain), []).append(contract)
    unread = [file for stream in streams for file in _unread(look, stream)]
    return [
        partition
        for (table, grain), contracts in readers.items()
        for partition in look.zone.scan(table, grain)
        if partition.ready
        and all(_has_left(look, contract, partition) for contract in contracts)
        and not any(partition.folder in file.parents for file in unread)
    ]


def _unread(look: Snapshot, stream: StreamedInput) -> list[Path]:
    used = [checkpoint for checkpoint in checkpoints(stream.checkpoints, stream.name) if checkpoint.identity]
    return [file for checkpoint in used[-1:] for file in stream.source.unread(checkpoint.finished(), look.zone.folder)]


def _has_left(look: Snapshot, contract: Contract, partition: LandedPartition) -> bool:
    entry = look.published(contract.dataset).get(partition.key)
    return entry is not None and entry.expired is not None and readiness_marker.is_published(partition, entry.landed)
