"""Merger: changes are merged into the rows of the same key; unchanged rows are not written again.

Problem: a provider delivers only the changes, or always everything although little has changed. Replacing the table
each time rewrites unchanged rows.

How it works: one commit (:func:`merge`; of a full delivery :func:`merge_all`), audited like every write. A change with
a known key updates the row if it differs, or deletes it if it is marked as removed; a change with a new key is
inserted. The audits see the table as the merge would leave it. Of a large table only the files with rows that really
change are written again; a small one is written whole. Of rows that are known to be new (:func:`add`) nothing else is
written. All is computed from one version of the table, and commits only while the table still has the rows of that
version.

The trap: a removed row in the very first delivery. It matches nothing, and an INSERT without the condition would add it
for ever. Another trap: several changes with one key. Which one wins must be decided where the changes are computed;
here they are refused, even two changes of which one has no effect. A change without a mark is also refused: it would be
dropped silently.

When not to use it: when the whole dataset is available and small (Data Overwrite), and when an old delivery must be
rerun: its changes would be merged into rows of later deliveries (Stateful Merger).

Source: Data Engineering Design Patterns, ch. 4.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from urllib.parse import unquote

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from blogdata.contract.contract import Contract
from blogdata.contract.publication import Commit
from blogdata.errors import ConfigurationError
from blogdata.table import arrow, kept_rows, tables
from blogdata.table.lake import rows_of_files
from blogdata.table.publish import publish
from blogdata.table.target import Exchange, Provenance, Rewrite, Target
from blogdata.table.write_faults import AMBIGUOUS_CHANGE, UNMARKED_CHANGE, translated

DELETED = "is_deleted"
"""Column of the changes that marks a row as removed."""
SMALL = 100_000
"""Rows of a table up to which it is rewritten whole: finding the files with changed keys would cost more."""
MOST_FILES = 24
"""Files of a table from which it is written whole where rows are only added."""


def merge(changes: DataFrame, target: Target, provenance: Provenance, *, at: int | None = None) -> Commit:
    """Merge changes into an unpartitioned table, audited and in one commit.

    Args:
        changes: Rows with the contract's columns and :data:`DELETED`, never null, one per key. Of a removed row only
            the key is used.
        at: Version of the table the changes were computed from; None: they do not depend on one.
    """
    contract = _mergeable(target.contract)
    distinct = unambiguous(all_marked(changes), contract)
    version = target.lake.version(contract.dataset) if at is None else at
    if version is None:
        # Another run may be creating the table: even first rows need a version.
        with translated(contract.dataset, ()):
            tables.enforce(changes.sparkSession, target.lake, contract)
        version = target.lake.version(contract.dataset)
    assert version is not None
    return _merged(distinct, target, provenance, at=version)


def merge_all(rows: DataFrame, target: Target, provenance: Provenance, *, at: int) -> Commit:
    """Merge a full delivery into a table: write the rows that differ, and delete those that are not delivered."""
    contract = _mergeable(target.contract)
    current = target.lake.read(rows.sparkSession, contract.dataset, at)
    changes = differences(unambiguous(rows, contract), current, contract)
    return _merged(changes, target, provenance, at=at)


def add(rows: DataFrame, target: Target, provenance: Provenance, *, at: int) -> Commit:
    """Add rows with new keys to a table; only these are written, until it has too many files."""
    dataset = target.contract.dataset
    table = target.lake.at(dataset, at)
    if len(table.file_uris()) >= MOST_FILES:
        rows = target.lake.read(rows.sparkSession, dataset, at).select(*rows.columns).unionByName(rows)
        provenance = replace(provenance, additions=provenance.additions.rewriting(provenance.additions.of))
        return publish(rows, target, change=Rewrite(at=at), partitions=(), provenance=provenance)
    return publish(rows, target, change=Exchange(at=at, files=()), partitions=(), provenance=provenance)


def _merged(changes: DataFrame, target: Target, provenance: Provenance, *, at: int) -> Commit:
    """Rewrite the files that have a row with a changed key, or of a small table all."""
    contract, lake, spark = target.contract, target.lake, changes.sparkSession
    current = lake.read(spark, contract.dataset, at)
    table = lake.at(contract.dataset, at)
    files = arrow.rows_of(table.get_add_actions(flatten=True))
    if len(files) < 2 or sum(file["num_records"] for file in files) <= SMALL:
        rows = rows_after_merge(changes, current, contract)
        return publish(rows, target, change=Rewrite(at=at), partitions=(), provenance=provenance)
    with kept_rows.computed(effective(changes, current, contract)) as kept:
        named = current.withColumn("_file", F.col("_metadata.file_name")).alias("t")
        found = named.join(kept.alias("s"), _same(contract), "left_semi").select("_file").distinct()
        touched = {row[0] for row in found.collect()}
        old = [file for file in files if unquote(file["path"]).rsplit("/", 1)[-1] in touched]
        columns = {column.name: column.type for column in contract.columns}
        there = rows_of_files(spark, lake.path(contract.dataset), columns, old, None)
        rows = rows_after_merge(kept, there, contract)
        change = Exchange(at=at, files=tuple(file["path"] for file in old))
        return publish(rows, target, change=change, partitions=(), provenance=provenance)


def unambiguous(changes: DataFrame, contract: Contract) -> DataFrame:
    """Make the evaluation of changes fail if several of them share a key; audits judge one that contains a null."""
    several = F.count(F.lit(1)).over(Window.partitionBy(*contract.key)) > 1
    known = reduce(Column.__and__, [F.col(name).isNotNull() for name in contract.key])
    refusal = F.raise_error(F.lit(f"[{AMBIGUOUS_CHANGE}] several changes have the key of one row")).cast("boolean")
    marked = changes.withColumn("_several", several & known)
    return marked.where(F.when(F.col("_several"), refusal).otherwise(F.lit(True))).drop("_several")


def all_marked(changes: DataFrame) -> DataFrame:
    """Make the evaluation of changes fail if the mark of a change is null."""
    refusal = F.raise_error(F.lit(f"[{UNMARKED_CHANGE}] a change is not marked")).cast("boolean")
    return changes.where(F.when(F.col(DELETED).isNull(), refusal).otherwise(F.lit(True)))


def effective(changes: DataFrame, current: DataFrame, contract: Contract) -> DataFrame:
    """Filter out the changes that have no effect on the table."""
    there = F.col("t._there").isNotNull()
    wanted = F.when(F.col(f"s.{DELETED}"), there).otherwise(~there | _differs(contract))
    marked = current.withColumn("_there", F.lit(True)).alias("t")
    joined = changes.alias("s").join(marked, on=_same(contract), how="left")
    return joined.where(wanted).select("s.*")


def differences(delivered: DataFrame, current: DataFrame, contract: Contract) -> DataFrame:
    """Return the changes that make a table a full delivery; both are read once."""
    there, gone = F.col("t._there").isNotNull(), F.col("s._there").isNull()
    rows, known = (
        each.withColumn("_there", F.lit(True)).alias(name) for name, each in (("s", delivered), ("t", current))
    )
    joined = rows.join(known, on=_same(contract), how="full")
    columns = [
        F.coalesce(f"s.{column.name}", f"t.{column.name}").alias(column.name)
        if column.name in contract.key
        else F.col(f"s.{column.name}")
        for column in contract.columns
    ]
    return joined.where(gone | ~there | _differs(contract)).select(*columns, gone.alias(DELETED))


def rows_after_merge(changes: DataFrame, current: DataFrame, contract: Contract) -> DataFrame:
    """Compute the rows of the table after a merge, or of some of its files."""
    columns = [column.name for column in contract.columns]
    arrived = changes.where(~F.col(DELETED)).select(*columns)
    kept = current.alias("t").join(changes.alias("s"), on=_same(contract), how="left_anti")
    return kept.select(*columns).unionByName(arrived)


def _mergeable(contract: Contract) -> Contract:
    if not contract.key or contract.partitioning is not None:
        raise ConfigurationError(
            what="a merge needs a table with a key and without partitions",
            where=contract.dataset,
            next_step="declare the contract's key, or overwrite its partitions",
        )
    return contract


def _differs(contract: Contract) -> Column:
    values = [column.name for column in contract.columns if column.name not in contract.key]
    pairs = [~F.col(f"s.{name}").eqNullSafe(F.col(f"t.{name}")) for name in values]
    return reduce(Column.__or__, pairs, F.lit(False))


def _same(contract: Contract) -> Column:
    # Rows that are older than a column of the key have a null in it: they are found, and replaced.
    return reduce(Column.__and__, [F.col(f"t.{name}").eqNullSafe(F.col(f"s.{name}")) for name in contract.key])
