"""Compactor: many small files of a table become few large ones, so that reading it stays as fast as it was.

Problem: a stream that commits every five seconds leaves 17,280 files a day, and queries spend their time opening them.
How it works: the sizes of a table's files are read from its log, without Spark (:func:`files`), and show which
partitions have too many small ones (:func:`due`): those at rest, to which nothing was added in the last hour, and which
are final where the dataset says when that is; and those that are never at rest, once they are crowded. :func:`compact`
exchanges the small files for larger ones, in one commit, if they have as many rows. The commit is no publication, so
nothing that reads the table becomes stale.
The trap: a compaction removes files that a publication of the same partition replaces, and is refused if the
publication comes first. Hence it claims its partitions, and leaves a dataset alone while another run publishes it;
beside a batch that is only appended both commits stand. And it frees nothing: the old files stay until a vacuum, since
older versions and running readers need them.
When not to use it: for tables that are written once, whole, in large files, such as the copies behind a pointer.
Source: Data Engineering Design Patterns, ch. 2.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta, timezone
from functools import reduce
from typing import TYPE_CHECKING, Any

from blogdata.contract.publication import COMPACTED, WHOLE_TABLE
from blogdata.errors import PlatformError
from blogdata.table import arrow, members, observed
from blogdata.table.committer import Mark, OpenCommit, Whole
from blogdata.table.faults import typed_errors
from blogdata.table.lake import columns_of, marks_rows, rows_of_files
from blogdata.table.publish import place_of
from blogdata.table.target import Probe, Target

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyspark.sql import Column, DataFrame, SparkSession

TARGET_BYTES = 128 * 1024**2
"""Largest size of a file that a compaction writes: Spark reads one such file by one task."""
SMALL_BYTES = TARGET_BYTES // 2
"""Size below which a file is small: two of them fit into one."""
MANY = 5
"""Number of small files from which a partition at rest is compacted: fewer would save less than the rewrite costs."""
CROWDED = 200
"""Number of small files from which a partition is compacted although rows are still added to it."""
AT_REST = timedelta(hours=1)
"""Time without a new file after which a partition is at rest."""


_SAMPLE, _BITS = 10_000, 8
"""Rows of a column from which its ranges are taken, and bits of the number of a range."""


@dataclass(frozen=True)
class DataFile:
    """A data file, as a table's log has it; its partition is :data:`WHOLE_TABLE` in an unpartitioned table."""

    partition: str
    bytes: int
    written_at: datetime


def files(table: DeltaTable) -> list[DataFile]:
    columns = table.metadata().partition_columns
    names = ["size_bytes", "modification_time", *(f"partition.{column}" for column in columns)]
    rows = [list(row.values()) for row in arrow.rows_of(table.get_add_actions(flatten=True), names)]
    return [
        DataFile(str(key[0]) if key else WHOLE_TABLE, size, datetime.fromtimestamp(written / 1000, timezone.utc))
        for size, written, *key in rows
    ]


def due(files: Iterable[DataFile], now: datetime, *, is_final: Callable[[str], bool]) -> dict[str, list[DataFile]]:
    """Map the partitions to compact to their small files, in order; after their compaction none of them is due."""
    by_partition: dict[str, list[DataFile]] = {}
    for file in files:
        by_partition.setdefault(file.partition, []).append(file)
    scattered = {}
    for key, its_files in sorted(by_partition.items()):
        small = [file for file in its_files if file.bytes < SMALL_BYTES]
        at_rest = max(file.written_at for file in its_files) <= now - AT_REST
        if len(small) >= CROWDED or (len(small) >= MANY and at_rest and is_final(key)):
            scattered[key] = small
    return scattered


@dataclass(frozen=True, kw_only=True)
class Compaction:
    rows: int
    files_before: int
    files: int
    bytes_before: int
    bytes: int


def compact(spark: SparkSession, target: Target, partitions: Sequence[str]) -> Compaction | None:
    """Merge the small files of some partitions that the run has claimed; None if none has two of them.

    A table with rows that are marked as removed is left until its next write, which dissolves the marks.
    """
    begun, column = _begun(target), target.contract.partition_column
    keys = [key for key in partitions if key != WHOLE_TABLE]
    chosen = [file for file in begun.files(keys or Whole.TABLE) if file["size_bytes"] < SMALL_BYTES]
    number = Counter(_value(file, column) for file in chosen)
    old = [file for file in chosen if number[_value(file, column)] > 1]
    if not old or marks_rows(begun.table):
        return None
    rows = _rows(spark, target, begun, old)
    merged = rows.repartition(len(number), column) if column else rows.coalesce(1)
    return _rewritten(merged, target, begun, old, TARGET_BYTES)


def sort(
    spark: SparkSession, target: Target, partitions: Sequence[str], by: Sequence[str], *, at: int, size: int
) -> int:
    """Sort the rows of some partitions of a member along a Z-order curve; return the version whose files are sorted."""
    from pyspark.sql import functions as F

    newest = target.lake.version(target.contract.dataset)
    if newest is not None and newest > at:
        # An earlier call has made it.
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
    with typed_errors(dataset):
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
