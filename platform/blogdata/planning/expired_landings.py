"""Which landed partitions no dataset and no stream needs any more, because what was published of them has expired."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from blogdata.patterns.error_management.checkpointer import checkpoints
from blogdata.patterns.ingestion import landed_partition
from blogdata.patterns.ingestion.landed_partition import LandedPartition
from blogdata.planning.graph import Graph
from blogdata.planning.observed import StreamedInput
from blogdata.planning.reach import landed_input
from blogdata.planning.snapshot import Snapshot
from blogdata.publish.contract import Contract
from blogdata.publish.partitions import Grain


def landed_over(look: Snapshot, graph: Graph, streams: Sequence[StreamedInput]) -> list[LandedPartition]:
    """Find the landed partitions that no dataset needs any more: what was published of them has expired.

    One whose files have changed since stays, and so does one with files that a stream has not read yet.

    Args:
        streams: The streams, which read landed files beside the lineage; one that never ran needs none.
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
    used = [one for one in checkpoints(stream.checkpoints, stream.name) if one.identity]
    return [file for one in used[-1:] for file in stream.source.unread(one, look.zone.folder)]


def _has_left(look: Snapshot, contract: Contract, partition: LandedPartition) -> bool:
    entry = look.published(contract.dataset).get(partition.key)
    return entry is not None and entry.expired is not None and landed_partition.is_published(partition, entry.landed)
