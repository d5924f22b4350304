"""Who still reads a column that is to be removed: datasets, and deliveries to databases (Schema Migrator)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from blogdata.evidence.events import EventLog
from blogdata.evidence.served import deliveries
from blogdata.lake.commit import Commit
from blogdata.lake.lake import Lake
from blogdata.patterns.observability import dataset_tracker, fine_grained_tracker
from blogdata.patterns.observability.fine_grained_tracker import ColumnSource
from blogdata.publish.contract import Contract
from blogdata.publish.writes import Feed, Serve


@dataclass(frozen=True, kw_only=True)
class Reader:
    """Somebody who reads a column, and who can change that: `team:name`."""

    name: str
    owner: str
    how: str


def readers(
    lake: Lake,
    events: EventLog,
    contracts: Mapping[str, Contract],
    dataset: str,
    column: str,
    *,
    landing: str,
) -> list[Reader]:
    """Find who reads a column: datasets by their newest publications, and deliveries to databases."""
    return [
        *_datasets(lake, contracts, dataset, column, landing),
        *_deliveries(events, contracts, dataset, column),
    ]


def _datasets(
    lake: Lake, contracts: Mapping[str, Contract], dataset: str, column: str, landing: str
) -> Iterator[Reader]:
    for name, contract in contracts.items():
        if name != dataset and not isinstance(contract.write, Serve | Feed) and lake.version(name) is not None:
            yield from _of_dataset(lake, contract, ColumnSource(dataset=dataset, column=column), landing)


def _of_dataset(lake: Lake, contract: Contract, wanted: ColumnSource, landing: str) -> Iterator[Reader]:
    reader = partial(Reader, owner=contract.owner)
    recorded = list(_by_newest_code(lake, contract.dataset, landing))
    known = [commit for commit, found in recorded if found is not None and wanted in found]
    origins = [fine_grained_tracker.sources(lake, landing, commit) for commit in known]
    mine = sorted({column for columns in origins for column, found in columns.items() if wanted in found})
    yield from (reader(name=f"{contract.dataset}.{column}", how="column lineage") for column in mine)
    if known and not mine:
        yield reader(name=contract.dataset, how="filters, joins or sorts by it")
    declared = [read for read in contract.reads if read.dataset == wanted.dataset != contract.main]
    if not declared:
        return
    # Lost lineage looks like none: without it, any column of a declared input may have been read.
    lost = sorted({key for commit, found in recorded if found is None for key in commit.entries})
    if lost or not recorded:
        which = f" {lost[0]}" + (f" and {len(lost) - 1} more" if lost[1:] else "") if any(lost) else ""
        yield reader(name=contract.dataset, how=f"the columns that it reads were not recorded; run it again{which}")
    elif any(wanted.column in (read.columns or ()) for read in declared):
        yield reader(name=contract.dataset, how="reads it outside Spark, as its contract says")
    elif all(read.columns is None for read in declared) and not any(
        source.dataset == wanted.dataset for _, found in recorded for source in found or ()
    ):
        how = "its column lineage names no column of this input; its contract has to say which it reads"
        yield reader(name=contract.dataset, how=how)


def _by_newest_code(lake: Lake, dataset: str, landing: str) -> Iterator[tuple[Commit, frozenset[ColumnSource] | None]]:
    """Find the newest publication of each partition, as far as the newest code that published has published it."""
    seen, code = set[str](), None
    for each in dataset_tracker.publications(lake, dataset):
        commit, by = each.commit, each.commit.info["run"]["code_version"]
        if code not in (None, by):
            return
        if commit.recomputes and commit.entries.keys() - seen:
            yield commit, fine_grained_tracker.read(lake, landing, commit)
            seen, code = seen | commit.entries.keys(), by


def _deliveries(events: EventLog, contracts: Mapping[str, Contract], dataset: str, column: str) -> Iterator[Reader]:
    for name, contract in contracts.items():
        write, below = contract.write, any(read.dataset == dataset for read in contract.reads)
        if isinstance(write, Feed):
            sent = {*write.payload, *write.identity, write.key, write.at, write.unless}
            read, how = column in sent, "sends it to a partner"
        elif isinstance(write, Serve):
            read, how = f"{dataset}.{column}" not in write.without, "delivers it to a database"
        else:
            continue
        if below and read and deliveries(events, name):
            yield Reader(name=name, owner=contract.owner, how=how)
