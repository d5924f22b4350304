"""Schema Migrator: a column is renamed, retyped or removed in steps, and no reader finds it gone.

Problem: a column has a name that misleads. Whoever renames it breaks every query that names it, on the same day.

How it works: add, both, remove. The contract declares the new column beside the old one, and a migration
(:class:`blogdata.contract.schema.Migration`) with its grace period. The table gets the new column with the next
publication, and older rows get its value from the old one, in one commit. From then on the asset computes one of the
two and :func:`blogdata.contract.migrations.both` derives the other; a rule of the contract (`migrating`) holds them
equal, so readers may move one by one. At last the contract drops the old column. It is still written until
:func:`remove` takes it away: one commit of metadata that touches no file, refused before the grace period is over and
while anybody still reads the column. Readers are known from column lineage and deliveries to databases
(:func:`readers`).

The trap: the last step is forgotten, and every row is written twice for ever; the phase of each migration is listed
until it is over. And the values of a removed column stay in the files until their partitions are written again: a
column of that name must never return, and to erase personal data this is the wrong tool.

When not to use it: for a column that is added (evolution does that), or whose meaning changes: that is another column,
or another dataset. Tables that are merged only lose columns; those that live in several tables are not migrated. A
column that a reader names only to drop it again is not found in column lineage; its next run fails, and says so.

Source: Data Engineering Design Patterns, ch. 9.
"""

from __future__ import annotations

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
from blogdata.ledger.events import Event, EventLog
from blogdata.patterns.observability import dataset_tracker, fine_grained_tracker
from blogdata.patterns.observability.fine_grained_tracker import ColumnSource
from blogdata.table.committer import ConcurrentWrite
from blogdata.table.lake import Lake
from blogdata.table.tables import CONTRACT, statistics

COLUMN_REMOVED = "column removed"
_CONSTRAINT = "delta.constraints."


class Phase(str, Enum):
    ADD = "add"
    """The table does not have the new column yet; it gets it with the next publication."""
    BOTH = "both"
    """Both columns are written, and readers move from the old one to the new one."""
    REMOVE = "remove"
    """The contract no longer has the old column; the table has it, and it is written, until it is removed."""
    OVER = "over"
    """The table no longer has the old column."""


@dataclass(frozen=True, kw_only=True)
class Reader:
    """A dataset or delivery that reads a column, and who can change that: `team:name`."""

    name: str
    owner: str
    how: str


def phase(lake: Lake, contract: Contract, migration: Migration) -> Phase:
    table = lake.caught_up(contract.dataset)
    present = set() if table is None else {field.name for field in table.schema().fields}
    declared = migration.old in {column.name for column in contract.columns}
    if declared and migration.new is not None and migration.new not in present:
        return Phase.ADD
    if not declared and migration.old not in present:
        return Phase.OVER
    return Phase.BOTH if declared else Phase.REMOVE


def readers(
    lake: Lake, events: EventLog, contracts: Mapping[str, Contract], dataset: str, column: str, *, landing: str
) -> list[Reader]:
    """Find who reads a column: datasets by their newest publications, and deliveries outside the lake."""
    found = []
    for name, contract in contracts.items():
        if isinstance(contract.write, Serve | Feed):
            how = _delivery(events, contract, dataset, column)
        elif name != dataset and lake.version(name) is not None:
            how = _reading(lake, contract, ColumnSource(dataset=dataset, column=column), landing)
        else:
            continue
        if how:
            found.append(Reader(name=name, owner=contract.owner, how=how))
    return found


def _reading(lake: Lake, contract: Contract, wanted: ColumnSource, landing: str) -> str:
    """Say how a dataset reads a column; empty if it does not."""
    recorded = list(_by_newest_code(lake, contract.dataset, landing))
    if any(found is not None and wanted in found for _, found in recorded):
        return "column lineage"
    declared = [read for read in contract.reads if read.dataset == wanted.dataset != contract.main]
    if not declared:
        return ""
    # Lost lineage looks like none: without it, any column of a declared input may have been read.
    lost = sorted({key for commit, found in recorded if found is None for key in commit.entries})
    if lost or not recorded:
        which = f" {lost[0]}" + (f" and {len(lost) - 1} more" if lost[1:] else "") if any(lost) else ""
        return f"the columns that it reads were not recorded; run it again{which}"
    if any(wanted.column in (read.columns or ()) for read in declared):
        return "reads it outside Spark, as its contract says"
    named = any(source.dataset == wanted.dataset for _, found in recorded for source in found or ())
    if named or any(read.columns is not None for read in declared):
        return ""
    return "its column lineage names no column of this input; its contract has to say which it reads"


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


def _delivery(events: EventLog, contract: Contract, dataset: str, column: str) -> str:
    write, below = contract.write, any(read.dataset == dataset for read in contract.reads)
    if isinstance(write, Feed):
        sent = {*write.payload, *write.identity, write.key, write.at, write.unless}
        read, how = column in sent, "sends it to a partner"
    else:
        assert isinstance(write, Serve)
        read, how = f"{dataset}.{column}" not in write.without, "delivers it to a database"
    return how if below and read and deliveries(events, contract.dataset) else ""


def remove(
    lake: Lake, events: EventLog, contract: Contract, column: str, found: Sequence[Reader], *, today: date
) -> int | None:
    """Remove a retired column in one commit that touches no file; return its version, None if there is no such column.

    A process that dies on the way has lifted constraints of the column at most; run it again.
    """
    migration = _retired(contract, column)
    table = lake.caught_up(contract.dataset)
    if table is None or column not in {field.name for field in table.schema().fields}:
        return None
    if migration.new and table.metadata().configuration.get(CONTRACT) != carried(contract, table).fingerprint:
        raise ConfigurationError(
            what=f"the table does not follow its contract yet: {migration.new} may lack values of {column}",
            where=f"{contract.dataset}: {migration}",
            next_step=Remedy("publish it once more: ", Run(datasets=(contract.dataset,))),
        )
    if today < migration.ends:
        raise PlatformError(
            what=f"readers of {column} have until {migration.ends} to move",
            where=f"{contract.dataset}: {migration}",
            next_step=f"wait {(migration.ends - today).days} days; until then both columns are written",
        )
    if found:
        raise PlatformError(
            what=f"{len(found)} still read {column}: "
            + "; ".join(f"{one.name} ({one.owner}; {one.how})" for one in found),
            where=f"{contract.dataset}: {migration}",
            next_step=f"ask {', '.join(sorted({reader.owner for reader in found}))} to read "
            f"{migration.new or 'something else'}, and publish again",
        )
    _lift(table, contract, column)
    version = _without(table, contract, column)
    events.append(
        [Event(kind=COLUMN_REMOVED, dataset=contract.dataset, payload={"column": column, "why": str(migration)})]
    )
    return version


def _retired(contract: Contract, column: str) -> Migration:
    if column in {one.name for one in contract.columns}:
        raise ConfigurationError(
            what=f"the contract still has {column}",
            where=contract.dataset,
            next_step=f"delete {column} from the columns of the contract, and leave its migration there",
        )
    retired = {migration.old: migration for migration in contract.migrations}
    if column not in retired:
        raise ConfigurationError(
            what=f"no migration retires {column}",
            where=contract.dataset,
            next_step=f"choose from: {', '.join(retired) or 'nothing, no column of this dataset is being retired'}",
        )
    return retired[column]


def _lift(table: DeltaTable, contract: Contract, column: str) -> None:
    """Drop what names the column in the table's properties, and note its name."""
    configuration = table.metadata().configuration
    for name, condition in configuration.items():
        if name.startswith(_CONSTRAINT) and re.search(rf"\b{re.escape(column)}\b", condition, re.IGNORECASE):
            table.alter.drop_constraint(name.removeprefix(_CONSTRAINT))
    noted = sorted({*filter(None, configuration.get(REMOVED, "").split(",")), column})
    properties = {**statistics(contract), REMOVED: ",".join(noted)}
    table.alter.set_table_properties(properties, raise_if_not_exists=False)


def _without(table: DeltaTable, contract: Contract, column: str) -> int:
    table.update_incremental()
    fields = [field for field in table.schema().fields if field.name != column]
    # An overwrite of nothing that matches: the schema changes, and no file is added or removed. Delta's own DROP COLUMN
    # needs column mapping, which this library cannot read.
    key = contract.partition_column or fields[0].name
    note = json.dumps({"removed": column, "dataset": contract.dataset})
    try:
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
