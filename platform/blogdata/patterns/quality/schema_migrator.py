"""Schema Migrator: a column is renamed, retyped or removed in steps, and no reader finds it gone.

Problem: a column has a name that misleads. To rename it breaks every query that names it, on the same day.
How it works: add, both, remove. The contract declares the new column beside the old one, and a migration
(:class:`blogdata.contract.schema.Migration`) with its grace period. The table gets the new column with the next
publication, and older rows get its value from the old one, in one commit. From then on the asset computes one of the
two and :func:`blogdata.contract.migrations.both` derives the other; a rule of the contract (`migrating`) holds them
equal, so readers may move one by one. At last the contract drops the old column. It is still written until
:func:`remove` takes it away: one commit of metadata that touches no file, refused before the grace period is over and
while the column is read. Readers are known from column lineage and deliveries to databases (:func:`readers`).
The trap: the last step is forgotten, and every row is written twice for ever; the phase of each migration is listed
until it is over. And the values of a removed column stay in the files until their partitions are written again: a
column of that name must never return, and to erase personal data this is the wrong tool.
When not to use it: for a column that is added (evolution does that), or whose meaning changes: that is another column,
or another dataset. Tables that are merged only lose columns; those that live in several tables are not migrated. A
column that a reader names only to drop it again is not in column lineage; that reader's next run fails, and says so.
Source: Data Engineering Design Patterns, ch. 9.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import Enum

from deltalake import CommitProperties, DeltaTable, Schema
from deltalake.exceptions import CommitFailedError

from blogdata.contract.contract import Contract
from blogdata.contract.migrations import REMOVED, carried
from blogdata.contract.publication import Commit
from blogdata.contract.schema import Migration
from blogdata.contract.writes import Feed, Serve
from blogdata.errors import ConfigurationError, PlatformError
from blogdata.errors.remedies import Remedy, Run
from blogdata.ledger.deliveries import deliveries
from blogdata.ledger.events import EventLog
from blogdata.patterns.observability import dataset_tracker, fine_grained_tracker
from blogdata.patterns.observability.fine_grained_tracker import ColumnSource
from blogdata.table.faults import ConcurrentWrite
from blogdata.table.lake import Lake
from blogdata.table.tables import CONTRACT, statistics

_CONSTRAINT = "delta.constraints."


class Phase(str, Enum):
    ADD = "add"
    """The table gets the new column with the next publication."""
    BOTH = "both"
    """Both columns are written, and readers move from the old one to the new one."""
    REMOVE = "remove"
    """The contract no longer has the old column; it is written until it is removed."""
    OVER = "over"


@dataclass(frozen=True, kw_only=True)
class Reader:
    """A dataset or delivery that reads a column, who can change that (`team:name`), and the evidence."""

    name: str
    owner: str
    how: str


def phase(lake: Lake, contract: Contract, migration: Migration) -> Phase:
    table = lake.caught_up(contract.dataset)
    present = set() if table is None else {field.name for field in table.schema().fields}
    if migration.old not in {column.name for column in contract.columns}:
        return Phase.REMOVE if migration.old in present else Phase.OVER
    return Phase.BOTH if migration.new is None or migration.new in present else Phase.ADD


def readers(
    lake: Lake, events: EventLog, contracts: Mapping[str, Contract], dataset: str, column: str, *, landing: str
) -> list[Reader]:
    """Find who reads a column: datasets by their newest publications, and deliveries outside the lake."""
    reading = []
    for name, contract in contracts.items():
        how = ""
        if isinstance(contract.write, Serve | Feed):
            how = _delivery(events, contract, dataset, column)
        elif name != dataset and lake.version(name) is not None:
            how = _reading(lake, contract, ColumnSource(dataset=dataset, column=column), landing)
        if how:
            reading.append(Reader(name=name, owner=contract.owner, how=how))
    return reading


def _reading(lake: Lake, contract: Contract, wanted: ColumnSource, landing: str) -> str:
    """Say how a dataset reads a column; empty if it does not."""
    recorded = list(_by_newest_code(lake, contract.dataset, landing))
    columns = {column for _, read in recorded for column in read or ()}
    if wanted in columns:
        return "column lineage"
    declared = [read for read in contract.reads if read.dataset == wanted.dataset != contract.main]
    if not declared:
        return ""
    # Lost lineage looks like none: without it, any column of a declared input may have been read.
    lost = sorted({key for commit, read in recorded if read is None for key in commit.entries})
    if lost or not recorded:
        return f"the columns that it reads were not recorded; run it again {', '.join(lost[:3])}".rstrip()
    if any(wanted.column in (read.columns or ()) for read in declared):
        return "reads it outside Spark, as its contract says"
    if any(column.dataset == wanted.dataset for column in columns) or any(
        read.columns is not None for read in declared
    ):
        return ""
    return "its column lineage names no column of this input; its contract has to say which it reads"


def _by_newest_code(lake: Lake, dataset: str, landing: str) -> Iterator[tuple[Commit, set[ColumnSource] | None]]:
    """Find the newest publication of each partition, as far as the newest code that published has published it."""
    seen, code = set[str](), None
    for commit, _ in dataset_tracker.publications(lake, dataset):
        by = commit.info["run"]["code_version"]
        if code not in (None, by):
            return
        if commit.entries.keys() - seen:
            yield commit, fine_grained_tracker.read(lake, landing, commit)
            seen, code = seen | commit.entries.keys(), by


def _delivery(events: EventLog, contract: Contract, dataset: str, column: str) -> str:
    write, below = contract.write, any(read.dataset == dataset for read in contract.reads)
    if isinstance(write, Feed):
        sent = {*write.payload, *write.identity, write.key, write.at, write.unless}
        read, how = column in sent, "sends it to a partner"
    else:
        assert isinstance(write, Serve)
        read, how = f"{dataset}.{column}" not in write.without, "delivers it to a database"
    return how if below and read and deliveries(events, contract.dataset) else ""


def remove(lake: Lake, contract: Contract, column: str, reading: Sequence[Reader], *, today: date) -> int | None:
    """Remove a retired column in one commit that touches no file; return its version, None if there is no such column.

    A process that dies on the way has lifted constraints of the column at most; run it again.
    """
    migration = next((migration for migration in contract.migrations if migration.old == column), None)
    if migration is None or column in {declared.name for declared in contract.columns}:
        raise ConfigurationError(
            what=f"the contract still has {column}, or no migration retires it",
            where=contract.dataset,
            next_step=f"delete {column} from the columns of the contract, and have a migration there for it",
        )
    table = lake.caught_up(contract.dataset)
    if table is None or column not in {field.name for field in table.schema().fields}:
        return None
    where = f"{contract.dataset}: {migration}"
    if migration.new and table.metadata().configuration.get(CONTRACT) != carried(contract, table).fingerprint:
        raise ConfigurationError(
            what=f"the table does not follow its contract yet: {migration.new} may lack values of {column}",
            where=where,
            next_step=Remedy("publish it once more: ", Run(datasets=(contract.dataset,))),
        )
    if today < migration.ends:
        raise PlatformError(
            what=f"readers of {column} have until {migration.ends} to move",
            where=where,
            next_step="wait until then; both columns are written",
        )
    if reading:
        raise PlatformError(
            what=f"{column} is still read by "
            + "; ".join(f"{reader.name} ({reader.owner}; {reader.how})" for reader in reading),
            where=where,
            next_step=f"have them read {migration.new or 'something else'}, and publish again",
        )
    _lift(table, contract, column)
    return _without(table, contract, column)


def _lift(table: DeltaTable, contract: Contract, column: str) -> None:
    """Drop what names the column in the table's properties, and note its name."""
    configuration = table.metadata().configuration
    for name, condition in configuration.items():
        if name.startswith(_CONSTRAINT) and re.search(rf"\b{re.escape(column)}\b", condition, re.IGNORECASE):
            table.alter.drop_constraint(name.removeprefix(_CONSTRAINT))
    removed = sorted({*filter(None, configuration.get(REMOVED, "").split(",")), column})
    properties = {**statistics(contract), REMOVED: ",".join(removed)}
    table.alter.set_table_properties(properties, raise_if_not_exists=False)


def _without(table: DeltaTable, contract: Contract, column: str) -> int:
    table.update_incremental()
    fields = [field for field in table.schema().fields if field.name != column]
    key = contract.partition_column or fields[0].name
    note = json.dumps({"removed": column, "dataset": contract.dataset})
    try:
        # An overwrite of nothing that matches: the schema changes, and no file is added or removed. Delta's own DROP
        # COLUMN needs column mapping, which this library cannot read.
        table.create_write_transaction(
            [],
            "overwrite",
            Schema(fields),
            partition_by=table.metadata().partition_columns,
            partition_filters=[(key, "=", "no partition has this key")],
            commit_properties=CommitProperties(custom_metadata={"userMetadata": note}, max_commit_retries=0),
        )
    except CommitFailedError as error:
        raise ConcurrentWrite(
            what="the table was published while a column was being removed",
            where=contract.dataset,
            next_step="the column is still there; run it again",
        ) from error
    table.update_incremental()
    return table.version()
