"""Who still reads a column that is to be removed: datasets, deliveries to databases, and people (Schema Migrator)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from evidence.column_reads import Reader, recorded
from evidence.events import EventLog
from evidence.served import deliveries
from lake.lake import Lake
from patterns.observability import dataset_tracker, fine_grained_tracker
from publish.contract import Contract
from publish.writes import Feed, Serve

ASKED_WITHIN = timedelta(days=30)
"""How long a recorded query counts as a reader."""


def readers(
    lake: Lake,
    events: EventLog,
    contracts: Mapping[str, Contract],
    dataset: str,
    column: str,
    *,
    landing: str,
    now: datetime,
) -> list[Reader]:
    """Find who reads a column: datasets by their newest publications, deliveries to databases, and recorded queries.

    Args:
        lake: The tables' root.
        events: The event log.
        contracts: Every dataset, of the lake or served.
        dataset: Name as `layer.table`.
        column: The column.
        landing: Path of the landing zone.
        now: Current time, timezone-aware; recorded queries count for a while.
    """
    return [
        *_datasets(lake, contracts, dataset, column, landing),
        *_deliveries(events, contracts, dataset, column),
        *_people(events, dataset, column, now),
    ]


def _datasets(
    lake: Lake, contracts: Mapping[str, Contract], dataset: str, column: str, landing: str
) -> Iterator[Reader]:
    for name, contract in contracts.items():
        below = any(read.dataset == dataset for read in contract.reads)
        if name == dataset or isinstance(contract.write, Serve | Feed):
            continue
        newest = next(dataset_tracker.publications(lake, name), None)
        if newest is None:
            continue
        if below and not newest.commit.info["column_lineage"]:
            yield Reader(name=name, owner=contract.owner, how="reads the dataset; its columns were not recorded")
        for mine, found in fine_grained_tracker.sources(lake, landing, newest.commit).items():
            if any((source.dataset, source.column) == (dataset, column) for source in found):
                yield Reader(name=f"{name}.{mine}", owner=contract.owner, how="column lineage")


def _deliveries(events: EventLog, contracts: Mapping[str, Contract], dataset: str, column: str) -> Iterator[Reader]:
    for name, contract in contracts.items():
        write, below = contract.write, any(read.dataset == dataset for read in contract.reads)
        if isinstance(write, Feed):
            read, how = column in {*write.payload, *write.identity, write.key, write.unless}, "sends it to a partner"
        elif isinstance(write, Serve):
            read, how = f"{dataset}.{column}" not in write.without, "delivers it to a database"
        else:
            continue
        if below and read and deliveries(events, name):
            yield Reader(name=name, owner=contract.owner, how=how)


def _people(events: EventLog, dataset: str, column: str, now: datetime) -> Iterator[Reader]:
    newest = {read.by: read.at for read in recorded(events, dataset) if read.column == column}
    for person, at in sorted(newest.items()):
        if at >= now - ASKED_WITHIN:
            yield Reader(name=f"a query of {person}", owner=person, how=f"asked on {at:%Y-%m-%d}")
