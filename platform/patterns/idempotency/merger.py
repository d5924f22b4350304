"""Merger: changes meet the rows of the same key; what did not change is not written again.

Problem: a provider delivers only what changed, or everything every time of which little has changed; to replace the
table each time rewrites rows that are as they were.

How it works: one MERGE, audited and committed like every write. A change whose key is there updates the row, if it
differs; one that marks the row as removed deletes it; one whose key is new is inserted. The audits see the table as
the merge would leave it. Only files with rows that really change are touched: Delta rewrites a file in which a
change meets a row even when it leaves that row as it is, so such changes are left out before. They are told by one
version of the table, and the merge happens on that version or not at all. Where MERGE cannot be audited
(``Engine.CHECKPOINT``), the whole table is computed and replaced, with the same promise: only while its rows are still
those of that version.

The trap: a removed row in the very first delivery. It matches nothing, and an INSERT without the condition would add
it, and never get rid of it: what is marked as removed is never inserted. Another one: several changes of one key.
Which one wins is for whoever computes the changes; here they are refused, also where MERGE would take them: a change
and a removal of a row that is not there, or one of two that leaves the row as it is. So is a change without a mark:
it meets none of MERGE's conditions, and would vanish.

When not to use it: when the whole dataset is at hand and small (Data Overwrite), and when an old delivery has to be run
again: its changes would meet rows of later deliveries (Stateful Merger).

Source: Data Engineering Design Patterns, ch. 4.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from errors import ConfigurationError
from lake.commit import Commit
from patterns.quality import constraints_enforcer
from patterns.quality.audit_write_audit_publish import publish
from publish.changes import Rewrite, Upsert
from publish.contract import Contract
from publish.target import Engine, Provenance, Target
from publish.write_faults import AMBIGUOUS_CHANGE, UNMARKED_CHANGE, translated

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

DELETED = "is_deleted"
"""Column of the changes that marks a row as removed."""


def merge(
    changes: DataFrame,
    target: Target,
    provenance: Provenance,
    *,
    deleted: str | None = DELETED,
    at: int | None = None,
) -> Commit:
    """Bring changes into a table that is written whole, audited and in one commit.

    Args:
        changes: Rows with the contract's columns, one per key, and the mark of removed ones (of which only the key
            counts).
        target: The table, its contract and the run.
        provenance: Inputs and accounts; they are about the table as the merge leaves it.
        deleted: Boolean column that marks a row as removed, null in none; None when changes remove nothing.
        at: Version of the table the changes were computed from; None: they were not, and the newest one is taken.

    Returns:
        The commit.

    Raises:
        ConfigurationError: The table has no key, or is partitioned.
        AmbiguousChange: Several changes have one key, whatever the table has; nothing was published.
        UnmarkedChange: A change has no mark, whatever the table has; nothing was published.
        ConcurrentWrite: The table is no longer at that version; transient.
        PlatformError: As :func:`publish`.
    """
    contract = target.contract
    if not contract.key or contract.partitioning is not None:
        raise ConfigurationError(
            what="a merge needs a table with a key and without partitions",
            where=contract.dataset,
            next_step="declare the contract's key, or overwrite its partitions",
        )
    distinct = unambiguous(changes if deleted is None else all_marked(changes, deleted), contract)
    version = target.lake.version(contract.dataset) if at is None else at
    if target.engine is Engine.CHECKPOINT:
        version = _made(changes.sparkSession, target) if version is None else version
        current = target.lake.read(changes.sparkSession, contract.dataset, version)
        rows = applied(distinct, current, contract, deleted=deleted)
        return publish(rows, target, change=Rewrite(at=version), partitions=(), provenance=provenance)
    upsert = Upsert(
        key=contract.key,
        columns=tuple(column.name for column in contract.columns),
        deleted=deleted,
        at=version,
    )
    rows = distinct
    if version is not None:
        current = target.lake.read(changes.sparkSession, contract.dataset, version)
        rows = effective(distinct, current, contract, deleted=deleted)
    return publish(rows, target, change=upsert, partitions=(), provenance=provenance)


def merge_all(rows: DataFrame, target: Target, provenance: Provenance, *, at: int) -> Commit:
    """Bring a table to the rows of a full delivery: those that differ are written, those it does not have are removed.

    A table that is older than a column of its key has rows that no change can meet: it is replaced, once.

    Args:
        rows: All rows there are now, with the contract's columns.
        target: The table, its contract and the run; it exists.
        provenance: Inputs and accounts.
        at: Version of the table that the rows were computed from.

    Returns:
        The commit.

    Raises:
        PlatformError: As :func:`merge`.
    """
    current = target.lake.read(rows.sparkSession, target.contract.dataset, at)
    if _is_older_than_its_key(current, target):
        return publish(rows, target, change=Rewrite(at=at), partitions=(), provenance=provenance)
    return merge(removed(rows, current, target.contract), target, provenance, at=at)


def unambiguous(changes: DataFrame, contract: Contract) -> DataFrame:
    """Have changes refuse to be computed when several of them have one key.

    Args:
        changes: As for :func:`merge`.
        contract: Of the table.

    Returns:
        The same changes. What a key with a null in it stands for is for the audits to say.
    """
    from pyspark.sql import Column, Window
    from pyspark.sql import functions as F

    several = F.count(F.lit(1)).over(Window.partitionBy(*contract.key)) > 1
    known = reduce(Column.__and__, [F.col(name).isNotNull() for name in contract.key])
    refusal = F.raise_error(F.lit(f"[{AMBIGUOUS_CHANGE}] several changes have the key of one row")).cast("boolean")
    marked = changes.withColumn("_several", several & known)
    return marked.where(F.when(F.col("_several"), refusal).otherwise(F.lit(True))).drop("_several")


def all_marked(changes: DataFrame, deleted: str) -> DataFrame:
    """Have changes refuse to be computed when one does not say whether its row is removed.

    Args:
        changes: As for :func:`merge`.
        deleted: Name of the mark.

    Returns:
        The same changes.
    """
    from pyspark.sql import functions as F

    refusal = F.raise_error(F.lit(f"[{UNMARKED_CHANGE}] a change is not marked")).cast("boolean")
    return changes.where(F.when(F.col(deleted).isNull(), refusal).otherwise(F.lit(True)))


def effective(changes: DataFrame, current: DataFrame, contract: Contract, *, deleted: str | None) -> DataFrame:
    """Leave out the changes that leave the table as it is.

    Args:
        changes: As for :func:`merge`.
        current: The table.
        contract: Of the table.
        deleted: As for :func:`merge`.

    Returns:
        New rows, rows that differ from those of their key, and removals of rows that are there.
    """
    from pyspark.sql import Column
    from pyspark.sql import functions as F

    there = F.col("t._there").isNotNull()
    values = [column.name for column in contract.columns if column.name not in contract.key]
    differs = reduce(
        Column.__or__, [~F.col(f"s.{name}").eqNullSafe(F.col(f"t.{name}")) for name in values], F.lit(False)
    )
    gone = F.lit(False) if deleted is None else F.col(f"s.{deleted}")
    wanted = F.when(gone, there).otherwise(~there | differs)
    marked = current.withColumn("_there", F.lit(True)).alias("t")
    joined = changes.alias("s").join(marked, on=_same(contract), how="left")
    return joined.where(wanted).select("s.*")


def removed(delivered: DataFrame, current: DataFrame, contract: Contract) -> DataFrame:
    """Give the removals that a full delivery implies: the rows of the table it does not have any more.

    Args:
        delivered: All rows there are now, with the contract's columns.
        current: The table.
        contract: Of the table.

    Returns:
        The delivered rows, not marked, and the rows that are gone, marked, by :data:`DELETED`.
    """
    from pyspark.sql import functions as F

    gone = current.join(delivered, on=list(contract.key), how="left_anti")
    columns = [column.name for column in contract.columns]
    return (
        delivered.select(*columns)
        .withColumn(DELETED, F.lit(False))
        .unionByName(gone.select(*columns).withColumn(DELETED, F.lit(True)))
    )


def applied(changes: DataFrame, current: DataFrame, contract: Contract, *, deleted: str | None) -> DataFrame:
    """Compute what a merge would leave, for engines that cannot audit one.

    Args:
        changes: As for :func:`merge`.
        current: The table.
        contract: Of the table.
        deleted: As for :func:`merge`.

    Returns:
        All rows of the table.
    """
    from pyspark.sql import functions as F

    columns = [column.name for column in contract.columns]
    alive: Column = F.lit(True) if deleted is None else ~F.col(deleted)
    arrived = changes.where(alive).select(*columns)
    kept = current.alias("t").join(changes.alias("s"), on=_same(contract), how="left_anti")
    return kept.select(*columns).unionByName(arrived)


def _is_older_than_its_key(current: DataFrame, target: Target) -> bool:
    from pyspark.sql import Column
    from pyspark.sql import functions as F

    table = target.lake.caught_up(target.contract.dataset)
    assert table is not None
    # A column that was there from the beginning is not nullable, and nothing has to be looked for.
    later = {field.name for field in table.schema().fields if field.nullable} & set(target.contract.key)
    return bool(later) and not current.where(reduce(Column.__or__, [F.col(name).isNull() for name in later])).isEmpty()


def _made(spark: SparkSession, target: Target) -> int:
    """Make the table, so that also the first rows are computed from a version: another run may be making it as well."""
    dataset = target.contract.dataset
    with translated(dataset, ()):
        constraints_enforcer.enforce(spark, target.lake, target.contract, engine=False)
    version = target.lake.version(dataset)
    assert version is not None
    return version


def _same(contract: Contract) -> Column:
    from pyspark.sql import Column
    from pyspark.sql import functions as F

    return reduce(Column.__and__, [F.col(f"t.{name}") == F.col(f"s.{name}") for name in contract.key])
