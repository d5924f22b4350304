"""Datasets whose rows live in several tables behind one name: the members, and the pointer to the visible ones.

The pointer is a small Delta table at the path of the dataset, with one row for each period in which a member was
visible. The members are beside it, in `<layer>/_<name>/`. A member is filled and audited before the pointer names one
of its versions, so readers never see later changes of its table. A commit of the pointer carries the metadata of the
members' commits, and fails unless it directly follows the state it was computed from (compare-and-set).
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction

from blogdata.errors import PlatformError
from blogdata.table import arrow
from blogdata.table.faults import typed_errors
from blogdata.table.store import Store

SCHEMA = arrow.schema(
    "member STRING NOT NULL, location STRING NOT NULL, member_version BIGINT NOT NULL, partition_column STRING, "
    "columns STRING NOT NULL, frozen BOOLEAN NOT NULL, rows STRING NOT NULL, run_id STRING NOT NULL, "
    "since_version BIGINT NOT NULL, visible_from TIMESTAMP NOT NULL, visible_until TIMESTAMP, removed_at TIMESTAMP"
)
_CALLED = {"name": "member", "version": "member_version", "rows_of": "rows"}
"""Columns that are called otherwise than the member's field."""
CLOSED = "delta.appendOnly"
"""Table property of a complete member: Delta itself refuses commits that change or remove its rows."""
_REMEMBERED = {"delta.setTransactionRetentionDuration": "interval 7 days"}
"""As for every table: a commit is idempotent for as long as its transaction identifier is retained."""


@dataclass(frozen=True, kw_only=True)
class Member:
    """A table with a part of a dataset's rows, and the period in which readers saw it; times are UTC."""

    name: str
    location: str
    version: int
    partition_column: str | None
    columns: Mapping[str, str]
    """Name to Spark SQL type, in order, as declared by the contract it was written under."""
    frozen: bool
    rows_of: Mapping[str, int]
    """Partition key to row count, for each partition that is read from it; `WHOLE_TABLE` if unpartitioned."""
    run_id: str
    since_version: int
    visible_from: datetime
    visible_until: datetime | None = None
    """When another member took its place; None while it is visible."""
    removed_at: datetime | None = None
    """When retention removed its files; None while they are kept."""

    @property
    def partitions(self) -> tuple[str, ...]:
        return tuple(sorted(self.rows_of))

    @property
    def rows(self) -> int:
        return sum(self.rows_of.values())

    @property
    def visible(self) -> bool:
        return self.visible_until is None


@dataclass(frozen=True, kw_only=True)
class Members:
    """The pointer at one version: all members that were ever visible, in the order in which they became visible."""

    version: int
    all: tuple[Member, ...]

    @property
    def visible(self) -> tuple[Member, ...]:
        return tuple(member for member in self.all if member.visible)

    def covering(self, partitions: Collection[str]) -> tuple[Member, ...]:
        return tuple(member for member in self.visible if not set(partitions).isdisjoint(member.partitions))

    def superseded(self, partitions: Collection[str], version: int, moment: datetime) -> tuple[Member, ...]:
        """Compute the pointer's rows after others take over partitions at a moment (UTC); members keep their others."""
        gone = set(partitions)
        rows: list[Member] = []
        for member in self.all:
            if not member.visible or gone.isdisjoint(member.partitions):
                rows.append(member)
                continue
            rows.append(replace(member, visible_until=moment))
            left = {key: count for key, count in member.rows_of.items() if key not in gone}
            if left:
                rows.append(replace(member, rows_of=left, since_version=version, visible_from=moment))
        return tuple(rows)


NONE_YET = Members(version=-1, all=())


def is_pointer(table: DeltaTable) -> bool:
    # Checked by the columns: delta-rs refuses to create a table with properties that Delta does not know.
    names: list[str] = SCHEMA.names
    return names == [field.name for field in table.schema().fields]


def members_of(table: DeltaTable) -> Members:
    with typed_errors(table.table_uri):
        rows = arrow.select(table, "SELECT * FROM t")
    ordered = sorted(map(_member, rows), key=lambda member: (member.since_version, member.name))
    return Members(version=table.version(), all=tuple(ordered))


def columns_of(chosen: Collection[Member]) -> dict[str, str]:
    """Merge the columns of some members, name to Spark SQL type, in the order of the widest member."""
    # No member loses a column that others keep (Schema Compatibility Enforcer), so the widest schema is the newest.
    columns: dict[str, str] = {}
    for member in sorted(chosen, key=lambda member: len(member.columns), reverse=True):
        for name, kind in member.columns.items():
            columns.setdefault(name, kind)
    return columns


def table_of(dataset: str, location: str) -> str:
    """Build the dataset name of a member's table: `bronze._devices/v2026-01-05-1f3a`."""
    layer, name = dataset.split(".", 1)
    return f"{layer}._{name}/{location}"


def dataset_of(table: str) -> str:
    """Return the dataset a table belongs to: for a member the dataset of its pointer, for any other table itself."""
    layer, name = table.split(".", 1)
    return f"{layer}.{name[1:].split('/', 1)[0]}" if name.startswith("_") else table


def refuse_direct(table: DeltaTable | None, dataset: str) -> None:
    if table is None:
        return
    if table.metadata().configuration.get(CLOSED) == "true":
        raise PlatformError(
            what="this copy is complete and is never written again",
            where=dataset,
            next_step=f"publish {dataset_of(dataset)}: every load is a copy of its own, and readers see the newest",
        )
    if is_pointer(table):
        raise PlatformError(
            what="the dataset lives in several tables behind its name; none of them is at its own path",
            where=dataset,
            next_step="publish it by blogdata.patterns.idempotency.proxy or .fast_metadata_cleaner",
        )


def seen(store: Store, dataset: str) -> Members:
    """Read the newest state of a dataset's pointer; :data:`NONE_YET` before its first publication."""
    table = store.table(dataset)
    if table is None:
        return NONE_YET
    if not is_pointer(table):
        raise PlatformError(
            what="the dataset is one table, not a pointer to several",
            where=f"{dataset} at {store.path(dataset)}",
            next_step="move the folder of the table away, and publish the dataset again",
        )
    return members_of(table)


def commit(
    store: Store,
    dataset: str,
    base: Members,
    rows: Sequence[Member],
    info: Mapping[str, Any],
    *,
    transaction_id: str | None = None,
) -> int | None:
    """Change a pointer; return the new version, or None if another writer has changed it since its state was read."""
    marks = None if transaction_id is None else [Transaction(transaction_id, 1, int(time.time() * 1000))]
    notes = {"userMetadata": json.dumps(info, default=str)}
    properties = CommitProperties(custom_metadata=notes, max_commit_retries=0, app_transactions=marks)
    table = None if base.version < 0 else store.at(dataset, base.version)
    data = pa.Table.from_pylist([_row(member) for member in rows], schema=SCHEMA)
    how = {"configuration": _REMEMBERED} if table is None else {}
    return base.version + 1 if store.put(dataset, data, table, commit=properties, **how) else None


def _row(member: Member) -> dict[str, Any]:
    values = {_CALLED.get(name, name): value for name, value in vars(member).items()}
    return {**values, "columns": json.dumps(dict(member.columns)), "rows": json.dumps(dict(member.rows_of))}


def _member(row: Mapping[str, Any]) -> Member:
    values = {field.name: row[_CALLED.get(field.name, field.name)] for field in fields(Member)}
    return Member(**{**values, "columns": json.loads(row["columns"]), "rows_of": json.loads(row["rows"])})
