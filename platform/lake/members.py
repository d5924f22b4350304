"""Datasets whose rows live in several tables behind one name: the members, and the pointer that says which are visible.

At the path of such a dataset lies its pointer, a small Delta table with one row for each time a member was visible.
The members lie beside it, in `<layer>/_<name>/`, where nobody takes them for datasets. A member is filled and audited
before the pointer names it, and it names one version of the member, so nothing that happens to its table afterwards is
seen. A commit of the pointer says about itself what the commits of the members said: versions, accounts, events and
staleness are those of any other table.

The pointer is changed by compare-and-set: a commit that is not the next one after the state it was made from fails.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError

from errors import PlatformError
from lake import arrow
from lake.data_files import ZSTD
from lake.store import Store
from lake.store_faults import store_faults

SCHEMA = pa.schema(
    [
        pa.field("member", pa.string(), nullable=False),
        pa.field("location", pa.string(), nullable=False),
        pa.field("member_version", pa.int64(), nullable=False),
        pa.field("partition_column", pa.string()),
        pa.field("columns", pa.string(), nullable=False),
        pa.field("frozen", pa.bool_(), nullable=False),
        pa.field("rows", pa.string(), nullable=False),
        pa.field("run_id", pa.string(), nullable=False),
        pa.field("since_version", pa.int64(), nullable=False),
        pa.field("visible_from", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("visible_until", pa.timestamp("us", tz="UTC")),
        pa.field("removed_at", pa.timestamp("us", tz="UTC")),
    ]
)
CLOSED = "delta.appendOnly"
"""Table property of a member that is complete: Delta itself refuses whoever would change or remove its rows."""
_CONSTRAINT = "delta.constraints."
_REMEMBERED = {
    # As for every table: a commit is idempotent for as long as its transaction identifier is remembered.
    "delta.setTransactionRetentionDuration": "interval 7 days",
}


class MemberClosed(PlatformError):
    """Something was to be written into a member that is complete."""


class BehindAPointer(PlatformError):
    """A dataset that lives in members was to be written as if it were one table."""


class NotBehindAPointer(PlatformError):
    """A dataset that is one table was to be written as members."""


class MemberRemoved(PlatformError):
    """An earlier version was read whose rows are gone by retention."""


@dataclass(frozen=True, kw_only=True)
class Member:
    """A table with a part of a dataset's rows, and when readers saw it.

    Args:
        name: Which part; of the visible members each has another name.
        location: Its folder in the folder of the members; never used for anything else afterwards.
        version: The version of its table that was audited.
        partition_column: The column these are keys of; None for an unpartitioned dataset.
        columns: Name to Spark SQL type, in order, as its contract had them.
        frozen: It holds several partitions for good.
        rows_of: Key of each partition that is read from it to its rows; `WHOLE_TABLE` when there are none.
        run_id: The run that published it.
        since_version: The dataset's version that made it visible.
        visible_from: When that was, UTC.
        visible_until: When another one took its place; None while it is visible.
        removed_at: When retention removed its files.
    """

    name: str
    location: str
    version: int
    partition_column: str | None
    columns: Mapping[str, str]
    frozen: bool
    rows_of: Mapping[str, int]
    run_id: str
    since_version: int
    visible_from: datetime
    visible_until: datetime | None = None
    removed_at: datetime | None = None

    @property
    def partitions(self) -> tuple[str, ...]:
        """The partitions that are read from it, in order."""
        return tuple(sorted(self.rows_of))

    @property
    def rows(self) -> int:
        """How many rows are read from it."""
        return sum(self.rows_of.values())

    @property
    def visible(self) -> bool:
        """True while readers see it."""
        return self.visible_until is None


@dataclass(frozen=True, kw_only=True)
class Members:
    """The pointer at one version: everything that was ever visible, in the order in which it became so."""

    version: int
    all: tuple[Member, ...]

    @property
    def visible(self) -> tuple[Member, ...]:
        """The members whose rows are the dataset's rows."""
        return tuple(member for member in self.all if member.visible)

    def covering(self, partitions: Collection[str]) -> tuple[Member, ...]:
        """Give the visible members that hold any of some partitions."""
        return tuple(member for member in self.visible if not set(partitions).isdisjoint(member.partitions))

    def superseded(self, partitions: Collection[str], version: int, moment: datetime) -> tuple[Member, ...]:
        """Give the rows of the pointer after some partitions come from elsewhere.

        Args:
            partitions: Their keys.
            version: The dataset's version from which on they do.
            moment: When that is.

        Returns:
            All members; one that has other partitions besides stays visible with these.
        """
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
    """Tell a pointer from a table with rows of its own."""
    # By its columns: delta-rs creates no table with properties that Delta does not know.
    names: list[str] = SCHEMA.names
    return names == [field.name for field in table.schema().fields]


def members_of(table: DeltaTable) -> Members:
    """Read a pointer at the version it is opened at.

    Raises:
        DataFileDamaged: Its file is gone or cut off.
    """
    with store_faults(table.table_uri):
        rows = arrow.select(table, "SELECT * FROM t")
    found = [
        Member(
            name=row["member"],
            location=row["location"],
            version=row["member_version"],
            partition_column=row["partition_column"],
            columns=json.loads(row["columns"]),
            frozen=row["frozen"],
            rows_of=json.loads(row["rows"]),
            run_id=row["run_id"],
            since_version=row["since_version"],
            visible_from=row["visible_from"],
            visible_until=row["visible_until"],
            removed_at=row["removed_at"],
        )
        for row in rows
    ]
    return Members(
        version=table.version(), all=tuple(sorted(found, key=lambda member: (member.since_version, member.name)))
    )


def columns_of(chosen: Collection[Member]) -> dict[str, str]:
    """Give every column that some members have, name to Spark SQL type, in the order of the widest one's."""
    # By schema, not by time: clocks go back, and what is left of a frozen member is as new as what took from it. No
    # member loses a column that others keep (`tables.hold_to`), so the widest one's schema is the newest.
    columns: dict[str, str] = {}
    for member in sorted(chosen, key=lambda member: len(member.columns), reverse=True):
        for name, kind in member.columns.items():
            columns.setdefault(name, kind)
    return columns


def table_of(dataset: str, location: str) -> str:
    """Give the name of a member's table, as the lake takes names: `bronze._devices/v2026-01-05-1f3a`."""
    layer, name = dataset.split(".", 1)
    return f"{layer}._{name}/{location}"


def dataset_of(table: str) -> str:
    """Give the dataset a table belongs to: a member's is that of its pointer, any other is one itself."""
    layer, name = table.split(".", 1)
    return f"{layer}.{name[1:].split('/', 1)[0]}" if name.startswith("_") else table


def refuse_direct(table: DeltaTable | None, dataset: str) -> None:
    """Refuse to write a table that is only a pointer, or that is complete.

    Raises:
        BehindAPointer: The dataset lives in members.
        MemberClosed: The table is a member that was published.
    """
    if table is None:
        return
    if table.metadata().configuration.get(CLOSED) == "true":
        raise MemberClosed(
            what="this copy is complete and is never written again",
            where=dataset,
            next_step=f"publish {dataset_of(dataset)}: every load is a copy of its own, and readers see the newest",
        )
    if is_pointer(table):
        raise BehindAPointer(
            what="the dataset lives in several tables behind its name; none of them is at its own path",
            where=dataset,
            next_step="publish it by patterns.idempotency.proxy or patterns.idempotency.fast_metadata_cleaner",
        )


def seen(store: Store, dataset: str) -> Members:
    """Read the newest state of a dataset's pointer; :data:`NONE_YET` before its first publication.

    Raises:
        NotBehindAPointer: The dataset is one table.
    """
    table = store.table(dataset)
    if table is None:
        return NONE_YET
    if not is_pointer(table):
        raise NotBehindAPointer(
            what="the dataset is one table, not a pointer to several",
            where=f"{dataset} at {store.path(dataset)}",
            next_step=f"publish {dataset} once more: it then keeps its copies, and its versions so far stay readable",
        )
    return members_of(table)


def base(store: Store, dataset: str) -> Members:
    """Read the state a publication starts from; a table from before the dataset lived in members is taken over.

    The versions of such a table stay readable and go on being counted; only its constraints, which are about columns a
    pointer does not have, are dropped before.

    Raises:
        NotBehindAPointer: The dataset is one table, and has partitions.
    """
    table = store.table(dataset)
    if table is None or is_pointer(table):
        return seen(store, dataset)
    if table.metadata().partition_columns:
        return seen(store, dataset)
    for name in table.metadata().configuration:
        if name.startswith(_CONSTRAINT):
            table.alter.drop_constraint(name.removeprefix(_CONSTRAINT))
    return Members(version=table.version(), all=())


def commit(
    store: Store,
    dataset: str,
    base: Members,
    rows: Sequence[Member],
    info: Mapping[str, Any],
    *,
    once: str | None = None,
) -> int | None:
    """Change a pointer, unless somebody else has changed it since its state was read.

    Args:
        store: Where the tables are.
        dataset: Name as `layer.table`.
        base: The state the rows were made from.
        rows: The new state.
        info: What the commit says about itself.
        once: Transaction identifier that tells whether this was committed before.

    Returns:
        The new version; None when somebody else was first, and nothing was changed.
    """
    data = pa.Table.from_pylist([_row(member) for member in rows], schema=SCHEMA)
    transactions = None if once is None else [Transaction(once, 1, int(time.time() * 1000))]
    properties = CommitProperties(
        custom_metadata={"userMetadata": json.dumps(info, default=str)},
        max_commit_retries=0,
        app_transactions=transactions,
    )
    path, options = store.path(dataset), dict(store.storage_options)
    try:
        if base.version < 0:
            write_deltalake(
                path,
                data,
                mode="error",
                configuration=_REMEMBERED,
                storage_options=options,
                commit_properties=properties,
                writer_properties=ZSTD,
            )
        else:
            table = DeltaTable(path, version=base.version, storage_options=options)
            write_deltalake(
                table,
                data,
                mode="overwrite",
                schema_mode=None if is_pointer(table) else "overwrite",
                commit_properties=properties,
                writer_properties=ZSTD,
            )
    except (CommitFailedError, DeltaError) as error:
        if isinstance(error, CommitFailedError) or "already exists" in str(error):
            return None
        raise
    return base.version + 1


def _row(member: Member) -> dict[str, Any]:
    return {
        "member": member.name,
        "location": member.location,
        "member_version": member.version,
        "partition_column": member.partition_column,
        "columns": json.dumps(dict(member.columns)),
        "frozen": member.frozen,
        "rows": json.dumps(dict(member.rows_of)),
        "run_id": member.run_id,
        "since_version": member.since_version,
        "visible_from": member.visible_from,
        "visible_until": member.visible_until,
        "removed_at": member.removed_at,
    }
