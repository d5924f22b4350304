"""Rewrites files of a table, fewer and larger or sorted, in one commit that changes no row.

Patterns: Compactor (:mod:`blogdata.table.compactor`), Sorter
(:mod:`blogdata.patterns.storage.sorter`).
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

from blogdata.contract.publication import COMPACTED
from blogdata.errors import PlatformError
from blogdata.table import members, observed
from blogdata.table.committer import Mark, OpenCommit, Whole
from blogdata.table.lake import marks_rows
from blogdata.table.publish import place_of
from blogdata.table.reads import columns_of, rows_of_files
from blogdata.table.target import Probe, Target
from blogdata.table.write_faults import translated

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_SAMPLE, _BITS = 10_000, 8
"""Rows of a column from which its ranges are taken, and bits of the number of a range."""


@dataclass(frozen=True, kw_only=True)
class Compaction:
    rows: int
    files_before: int
    files: int
    bytes_before: int
    bytes: int


def compact(
    spark: SparkSession, target: Target, partitions: Sequence[str], *, small: int, most: int
) -> Compaction | None:
    """Merge the small files of some partitions, in one commit; None if no two small files are in one partition.

    A table with rows that are marked as removed is left until its next write, which dissolves the marks.
    """
    begun, column = _begun(target), target.contract.partition_column
    chosen = [file for file in begun.files(partitions or Whole.TABLE) if file["size_bytes"] < small]
    number = Counter(_value(file, column) for file in chosen)
    old = [file for file in chosen if number[_value(file, column)] > 1]
    if not old or marks_rows(begun.table):
        return None
    rows = _rows(spark, target, begun, old)
    merged = rows.repartition(len(number), column) if column else rows.coalesce(1)
    return _rewritten(merged, target, begun, old, most)


def sort(
    spark: SparkSession, target: Target, partitions: Sequence[str], by: Sequence[str], *, at: int, size: int
) -> int:
    """Sort the rows of some partitions of a member along a Z-order curve, in one commit.

    Returns:
        The version whose files are sorted: if it is newer than `at`, an earlier call has made it.
    """
    from pyspark.sql import functions as F

    newest = target.lake.version(target.contract.dataset)
    if newest is not None and newest > at:
        return newest
    begun = _begun(target)
    begun.require(at)
    old = begun.files(partitions)
    rows = _rows(spark, target, begun, old)
    order = [F.col(str(target.contract.partition_column)), _curve(rows, by)]
    files = max(1, sum(file["size_bytes"] for file in old) // size)
    ordered = rows.repartitionByRange(files, *order).sortWithinPartitions(*order)
    _rewritten(ordered, target, begun, old, size)
    return at + 1


def _curve(rows: DataFrame, by: Sequence[str]) -> Column:
    """Return the place of a row on the Z-order curve: the bits of its ranges in each column, interleaved."""
    from pyspark.sql import Column
    from pyspark.sql import functions as F

    def spread(number: Column, at: Column) -> Column:
        bits = [
            F.shiftleft(F.shiftright(number, bit).bitwiseAND(F.lit(1).cast("bigint")), bit * len(by))
            for bit in range(_BITS)
        ]
        return reduce(Column.__add__, bits) * F.pow(F.lit(2), at).cast("bigint")

    places = F.transform(F.array(*[_range(rows, name) for name in by]), spread)
    return F.aggregate(places, F.lit(0).cast("bigint"), lambda sum_, place: sum_ + place)


def _range(rows: DataFrame, name: str) -> Column:
    """Return which range a value is in, of ranges with about as many rows each; a null is in the first one."""
    from pyspark.sql import functions as F

    values = rows.select(name).where(F.col(name).isNotNull()).orderBy(F.rand(0)).limit(_SAMPLE).collect()
    some = sorted(row[0] for row in values)
    bounds = sorted({some[len(some) * part >> _BITS] for part in range(1, 2**_BITS)}) if some else []
    reached = F.filter(F.array(*[F.lit(bound) for bound in bounds]), lambda bound: bound <= F.col(name))
    return (F.size(reached) if bounds else F.lit(0)).cast("bigint")


def _begun(target: Target) -> OpenCommit:
    dataset = target.contract.dataset
    begun = OpenCommit(target.lake, dataset, Mark(writer=f"{COMPACTED}/{uuid.uuid4()}", batch=1))
    members.refuse_direct(begun.table, dataset)
    return begun


def _value(file: Mapping[str, Any], column: str | None) -> Any:
    return file[f"partition.{column}"] if column else None


def _rows(spark: SparkSession, target: Target, begun: OpenCommit, files: Sequence[Mapping[str, Any]]) -> DataFrame:
    contract, columns = target.contract, columns_of(begun.table)
    return rows_of_files(spark, target.lake.path(contract.dataset), columns, files, contract.partition_column)


def _rewritten(
    rows: DataFrame, target: Target, begun: OpenCommit, old: Sequence[Mapping[str, Any]], most: int
) -> Compaction:
    """Write rows of old files as new ones, and exchange them if these have as many."""
    dataset, probe = target.contract.dataset, Probe(target.probe)
    probe.reached("opened")
    listed, of = sum(file["num_records"] for file in old), sum(file["size_bytes"] for file in old)
    with translated(dataset, ()):
        place = replace(place_of(rows, target, begun.table), columns=columns_of(begun.table))
        new, read = observed.copy(rows, place, most_rows=max(1, listed * most // of))
    probe.reached("written")
    written = sum(file.rows for file in new)
    if not listed == read == written:
        raise PlatformError(
            what=f"a compaction would change the rows: {listed} are listed, {read} were read, {written} written",
            where=dataset,
            next_step="nothing was changed; have the table's files looked at, and report it",
        )
    done = Compaction(
        rows=listed, files_before=len(old), files=len(new), bytes_before=of, bytes=sum(file.size for file in new)
    )
    info = {"commit_id": f"{COMPACTED}/{uuid.uuid4()}", "dataset": dataset, "run": asdict(target.run)}
    probe.reached("audited")
    # Rows that come beside these files concern nobody; only a file that is gone does.
    begun.exchange(old, new, {**info, COMPACTED: asdict(done)}, reads=(), data_change=False)
    probe.reached("committed")
    return done
