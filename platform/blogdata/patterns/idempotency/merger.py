"""Merger: changes are merged into the rows of the same key; unchanged rows are not written again.

Problem: a provider delivers only the changes, or always everything although little has changed. Replacing the table
rewrites unchanged rows.
How it works: one commit (:func:`merge`; of a full delivery :func:`merge_all`), audited as the table would be after it.
A change with a known key updates the row if it differs, or deletes it if it is marked as removed; one with a new key is
inserted. Of a large table only the files with rows that really change are written again; a small one is written whole.
Of rows that are known to be new (:func:`add`) nothing else is written. All is computed from one version of the table,
and commits only while the table still has the rows of that version.
The trap: a removed row in the very first delivery: it matches nothing, and an INSERT without the condition would add it
for ever. Another trap: several changes with one key. Which one wins must be decided where the changes are computed;
here they are refused, even if they have no effect. A change without a mark is refused, too.
When not to use it: when the whole dataset is available and small (Data Overwrite), and when an old delivery must be
rerun: its changes would be merged into rows of later deliveries (Stateful Merger).
Source: "Data Engineering Design Patterns", ch. 4.
"""

from dataclasses import replace
from functools import reduce
from urllib.parse import unquote

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from blogdata.contract.contract import Contract
from blogdata.contract.publication import Commit
from blogdata.table import arrow, kept_rows
from blogdata.table.faults import AMBIGUOUS_CHANGE, UNMARKED_CHANGE
from blogdata.table.lake import marks_rows, rows_of_files
from blogdata.table.publish import publish
from blogdata.table.target import Exchange, Provenance, Rewrite, Target

DELETED = "is_deleted"
"""Column of the changes that marks a row as removed."""
SMALL = 100_000
"""Rows of a table up to which it is rewritten whole: finding the files with changed keys would cost more."""
MOST_FILES = 24
"""Files of a table from which it is written whole where rows are only added."""


def merge(
    changes: DataFrame,
    target: Target,
    provenance: Provenance,
    *,
    at: int,
    into: DataFrame | None = None,
) -> Commit:
    """Merge changes into an unpartitioned table at a version, audited and in one commit.

    Args:
        changes: Rows with the contract's columns and :data:`DELETED`, never null, one per key. Of a removed row only
            the key is used.
        into: Rows that replace those of the table before the merge, e.g. of an earlier version.
    """
    contract = target.contract
    assert contract.key, "declare the contract's key, or overwrite its partitions"
    assert contract.partitioning is None, "overwrite the partitions of a partitioned table"
    return _merged(unambiguous(changes, contract), target, provenance, at=at, into=into)


def merge_all(rows: DataFrame, target: Target, provenance: Provenance, *, at: int) -> Commit:
    """Merge a full delivery into a table: write the rows that differ, and delete those that are not delivered."""
    contract = target.contract
    current = target.lake.read(rows.sparkSession, contract.dataset, at)
    changes = differences(unambiguous(rows, contract), current, contract)
    return _merged(changes, target, provenance, at=at)


def add(rows: DataFrame, target: Target, provenance: Provenance, *, at: int) -> Commit:
    """Add rows with new keys to a table; only these are written, until it has too many files."""
    dataset = target.contract.dataset
    table = target.lake.at(dataset, at)
    if marks_rows(table) or len(table.file_uris()) >= MOST_FILES:
        rows = target.lake.read(rows.sparkSession, dataset, at).select(*rows.columns).unionByName(rows)
        provenance = replace(provenance, additions=provenance.additions.rewriting(provenance.additions.of))
        return publish(rows, target, change=Rewrite(at=at), partitions=(), provenance=provenance)
    return publish(rows, target, change=Exchange(at=at, files=()), partitions=(), provenance=provenance)


def _merged(
    changes: DataFrame, target: Target, provenance: Provenance, *, at: int, into: DataFrame | None = None
) -> Commit:
    """Rewrite the files that have a row with a changed key, or of a small table all."""
    contract, lake, spark = target.contract, target.lake, changes.sparkSession
    current = lake.read(spark, contract.dataset, at)
    table = lake.at(contract.dataset, at)
    files = arrow.rows_of(table.get_add_actions(flatten=True))
    small = len(files) < 2 or marks_rows(table) or sum(file["num_records"] for file in files) <= SMALL
    if small or into is not None:
        rows = rows_after_merge(changes, current if into is None else into, contract)
        return publish(rows, target, change=Rewrite(at=at), partitions=(), provenance=provenance)
    with kept_rows.computed(effective(changes, current, contract)) as kept:
        named = current.withColumn("_file", F.col("_metadata.file_name")).alias("t")
        matches = named.join(kept.alias("s"), _same(contract), "left_semi").select("_file").distinct()
        touched = {row[0] for row in matches.collect()}
        old = [file for file in files if unquote(file["path"]).rsplit("/", 1)[-1] in touched]
        columns = {column.name: column.type for column in contract.columns}
        rows = rows_after_merge(kept, rows_of_files(spark, lake.path(contract.dataset), columns, old, None), contract)
        change = Exchange(at=at, files=tuple(file["path"] for file in old))
        return publish(rows, target, change=change, partitions=(), provenance=provenance)


def unambiguous(changes: DataFrame, contract: Contract) -> DataFrame:
    """Make the evaluation of changes fail if several share a key, or a mark is null; audits judge a key with a null."""

    def refusal(fault: str, why: str) -> Column:
        return F.raise_error(F.lit(f"[{fault}] {why}")).cast("boolean")

    several = F.count(F.lit(1)).over(Window.partitionBy(*contract.key)) > 1
    known = reduce(Column.__and__, [F.col(name).isNotNull() for name in contract.key])
    judged = changes.withColumn("_several", several & known)
    sound = F.when(F.col("_several"), refusal(AMBIGUOUS_CHANGE, "several changes have the key of one row"))
    if DELETED in changes.columns:
        sound = sound.when(F.col(DELETED).isNull(), refusal(UNMARKED_CHANGE, "a change is not marked"))
    return judged.where(sound.otherwise(F.lit(True))).drop("_several")


def effective(changes: DataFrame, current: DataFrame, contract: Contract) -> DataFrame:
    """Filter out the changes that have no effect on the table."""
    is_known = F.col("t._known").isNotNull()
    wanted = F.when(F.col(f"s.{DELETED}"), is_known).otherwise(~is_known | _differs(contract))
    joined = changes.alias("s").join(_known(current, "t"), on=_same(contract), how="left")
    return joined.where(wanted).select("s.*")


def differences(delivered: DataFrame, current: DataFrame, contract: Contract) -> DataFrame:
    """Return the changes that make a table a full delivery; both are read once."""
    is_known, gone = F.col("t._known").isNotNull(), F.col("s._known").isNull()
    joined = _known(delivered, "s").join(_known(current, "t"), on=_same(contract), how="full")
    columns = [
        (F.coalesce(f"s.{name}", f"t.{name}") if name in contract.key else F.col(f"s.{name}")).alias(name)
        for name in (column.name for column in contract.columns)
    ]
    return joined.where(gone | ~is_known | _differs(contract)).select(*columns, gone.alias(DELETED))


def _known(rows: DataFrame, name: str) -> DataFrame:
    return rows.withColumn("_known", F.lit(True)).alias(name)


def rows_after_merge(changes: DataFrame, current: DataFrame, contract: Contract) -> DataFrame:
    """Compute the rows of the table after a merge, or of some of its files."""
    columns = [column.name for column in contract.columns]
    arrived = changes.where(~F.col(DELETED)).select(*columns)
    kept = current.alias("t").join(changes.alias("s"), on=_same(contract), how="left_anti")
    return kept.select(*columns).unionByName(arrived)


def _differs(contract: Contract) -> Column:
    values = [column.name for column in contract.columns if column.name not in contract.key]
    pairs = [~F.col(f"s.{name}").eqNullSafe(F.col(f"t.{name}")) for name in values]
    return reduce(Column.__or__, pairs, F.lit(False))


def _same(contract: Contract) -> Column:
    # Rows that are older than a column of the key have a null in it: they are found, and replaced.
    return reduce(Column.__and__, [F.col(f"t.{name}").eqNullSafe(F.col(f"s.{name}")) for name in contract.key])
