"""Schema Migrator: a column is renamed, retyped or removed in steps, and no reader finds it gone.

Problem: a column has a name that misleads. Whoever renames it breaks every query that names it, on the same day.

How it works: add, both, remove. The contract declares the new column beside the old one, and a migration
(:class:`blogdata.publish.schema.Migration`) with its grace period. The table gets the new column with the next
publication, and older rows get its value from the old one, in one commit. From then on the asset computes one of the
two and :func:`blogdata.publish.migrations.both` derives the other; a rule of the contract (`migrating`) holds them
equal, so readers may move one by one. At last the contract drops the old column. The table still has it, and it is
still written, until :func:`remove` takes it away: one commit of metadata that touches no file, refused before the grace
period is over and while anybody still reads the column. Readers are known from column lineage and deliveries to
databases (:mod:`blogdata.patterns.observability.column_readers`). Earlier versions still have the column.

The trap: the last step is forgotten, and every row is written twice for ever; the phase of each migration is listed
until it is over. And the values of a removed column stay in the files until their partitions are written again: a
column of that name must never return, it would show them, and to erase personal data this is the wrong tool.

When not to use it: for a column that is added (evolution does that), or whose meaning changes: that is another column,
or another dataset. Tables that are merged only lose columns; those that live in several tables are not migrated. A
column that a reader names only to drop it again is not found in column lineage; its next run fails, and says so.

Source: Data Engineering Design Patterns, ch. 9.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from enum import Enum

from deltalake import CommitProperties, DeltaTable, Schema
from deltalake.exceptions import CommitFailedError

from blogdata.errors import ConfigurationError, PlatformError
from blogdata.errors.remedies import Remedy, RemoveColumn, Run
from blogdata.evidence.event import Event
from blogdata.evidence.events import EventLog
from blogdata.lake.committer import ConcurrentWrite
from blogdata.lake.lake import Lake
from blogdata.patterns.observability.column_readers import Reader
from blogdata.publish.contract import Contract
from blogdata.publish.migrations import REMOVED, carried
from blogdata.publish.schema import Migration
from blogdata.publish.tables import CONTRACT, statistics

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
class Status:
    dataset: str
    migration: Migration
    phase: Phase
    readers: tuple[Reader, ...]
    next_step: Remedy


def status(lake: Lake, contract: Contract, migration: Migration, found: Sequence[Reader], today: date) -> Status:
    table = lake.caught_up(contract.dataset)
    present = set() if table is None else {field.name for field in table.schema().fields}
    declared = migration.old in {column.name for column in contract.columns}
    new = migration.new
    if declared and new is not None and new not in present:
        phase, remedy = Phase.ADD, Remedy("the next publication adds it: ", Run(datasets=(contract.dataset,)))
    elif not declared and migration.old not in present:
        phase, remedy = Phase.OVER, Remedy("delete the migration from the contract, once it is over everywhere")
    else:
        phase = Phase.BOTH if declared else Phase.REMOVE
        remedy = _next(contract, migration, found, today, declared=declared)
    return Status(dataset=contract.dataset, migration=migration, phase=phase, readers=tuple(found), next_step=remedy)


def remove(
    lake: Lake, events: EventLog, contract: Contract, column: str, found: Sequence[Reader], *, today: date
) -> int | None:
    """Remove a retired column from its table, in one commit that touches no file.

    A process that dies on the way has lifted constraints of the column at most; run it again.

    Returns:
        The version of the table without it; None if the table does not have it.

    Raises:
        ConcurrentWrite: The table was published meanwhile; transient.
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
            what=f"{len(found)} still read {column}: " + "; ".join(_named(reader) for reader in found),
            where=f"{contract.dataset}: {migration}",
            next_step=f"ask {', '.join(sorted({reader.owner for reader in found}))} to read "
            f"{migration.replacement or 'something else'}, and publish again",
        )
    _lift(table, contract, column)
    version = _without(table, contract, column)
    events.append(
        [Event(kind=COLUMN_REMOVED, dataset=contract.dataset, payload={"column": column, "why": str(migration)})]
    )
    return version


def _next(contract: Contract, migration: Migration, found: Sequence[Reader], today: date, *, declared: bool) -> Remedy:
    new = migration.replacement
    if found:
        owners = ", ".join(sorted({reader.owner for reader in found}))
        return Remedy(f"{owners}: read {new}" if new else f"{owners}: stop reading it")
    if today < migration.ends:
        return Remedy(f"wait until {migration.ends}")
    if declared:
        return Remedy(f"delete {migration.old} from the contract")
    return Remedy(RemoveColumn(dataset=contract.dataset, column=migration.old))


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


def _named(reader: Reader) -> str:
    return f"{reader.name} ({reader.owner}; {reader.how})"


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
