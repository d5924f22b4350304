"""Published partitions whose landed files were changed in place, or only copied: their content is compared once.

A time of modification or change moves with the content, but also by a `chmod`, a hard link, or when the landing zone is
copied or restored from a backup. So it makes nothing stale by itself. The next run reads the files beside the published
lines and records the result in the event log: with the same content the files count as published, with another one
their partition is stale.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from blogdata.errors import PlatformError
from blogdata.lake.commit import WHOLE_TABLE
from blogdata.patterns.ingestion import landed_content, published_files
from blogdata.patterns.ingestion.landed_partition import LandedPartition
from blogdata.planning.reach import landed_input
from blogdata.planning.snapshot import Snapshot

if TYPE_CHECKING:
    from blogdata.publish.contract import Contract

AT_ONCE = 24
"""Results that are recorded at once: a run that is killed over a copied landing zone has not read all of it in vain."""


def touched_in(look: Snapshot, contract: Contract) -> dict[str, LandedPartition]:
    """Find the published partitions of a dataset whose landed files were changed, by their times alone."""
    source = landed_input(contract)
    assert source is not None, f"{contract.dataset} reads nothing that lands"
    published, found = look.published(contract.dataset), {}
    for partition in look.landed(source.table, source.grain):
        entry = published.get(WHOLE_TABLE if contract.partitioning is None else partition.key)
        # The published lines of what has expired are gone: there is nothing to compare with.
        if entry is None or entry.expired is not None:
            continue
        if published_files.is_touched(partition, entry.landed, entry.committed_at):
            found[partition.key] = partition
    return found


def compare(look: Snapshot, contracts: Collection[Contract]) -> dict[str, list[str]]:
    """Compare the content of all touched partitions with what was published, and record the results.

    Returns:
        Dataset to the keys of the partitions with another content; a file that cannot be read is another content.
    """
    from blogdata.evidence.event import COMPARED, Event

    changed: dict[str, list[str]] = {}
    for contract in contracts:
        results: list[Event] = []
        for key, partition in touched_in(look, contract).items():
            entry = look.published(contract.dataset)[WHOLE_TABLE if contract.partitioning is None else key]
            same = _is_same(look, contract, partition)
            if not same:
                changed.setdefault(contract.dataset, []).append(key)
            results.append(
                Event(
                    kind=COMPARED,
                    dataset=contract.dataset,
                    partition=entry.partition,
                    table_version=entry.version,
                    payload={"landed": _state(contract, partition) if same else None},
                )
            )
            if len(results) == AT_ONCE:
                look.events.append(results)
                results = []
        look.events.append(results)
    return changed


def _is_same(look: Snapshot, contract: Contract, partition: LandedPartition) -> bool:
    root = look.zone.folder
    files = [partition.folder / file.name for file in partition.files]
    try:
        there = landed_content.landed_lines(files, root)
        return landed_content.is_same(there, landed_content.published_lines(look.events.lake, contract, partition.key))
    except PlatformError:
        # The run of the partition meets the same error, and reports it.
        return False


def _state(contract: Contract, partition: LandedPartition) -> str:
    state = published_files.state_of(partition)
    return state if contract.partitioning is not None else f"{partition.key}:{state}"
