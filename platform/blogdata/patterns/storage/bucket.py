"""Bucket: rows of one user have one of a few buckets; tables that are sorted by it are joined without a shuffle.

Problem: two tables are joined by user. Every join shuffles both of them, although nothing has changed since the last
one. To partition them by user would make a folder for each.
How it works: a column has the bucket of each row's user, a keyed hash modulo a small number (:func:`of`), and files
have its minimum and maximum (Metadata Enhancer), so a predicate on it skips files of other buckets in frozen years,
which are sorted by it (Sorter). Delta has no `bucketBy`, from which Spark would know this. So :func:`read` deals ranges
of buckets to tasks: a task reads the rows of its range from each table, and joins and aggregates them alone
(:class:`Together`). The plan has no Exchange.
The trap: trust. If a user's rows have two buckets, because two tables count them differently or rows are older than the
column, a join loses pairs and a group comes twice, without an error. So the buckets are read from the table's log, at
the version that is read: tables that state none, or others, are refused (:class:`UsersNotTogether`), and so is a row
with a user and no bucket. The hash is keyed, with a key that is never replaced: an unkeyed one would let anybody test
whether a row, whose user was erased, is that of a known user.
When not to use it: where little is shuffled, for small tables, or for one query. A file that lies in the ranges of two
tasks is read by both. A bucket is never split, so a user with most of the rows keeps one task busy. And a query in
plain SQL still shuffles, and only skips files if it names the bucket.
Source: Data Engineering Design Patterns, ch. 8.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from blogdata.contract.schema import Buckets
from blogdata.errors import PlatformError
from blogdata.table.lake import Stored, TableSlice
from blogdata.table.tables import BUCKETS

_DIGITS = 15
"""Hexadecimal digits of a hash that give a bucket: as many as a BIGINT holds."""


class UsersNotTogether(PlatformError):
    """Raised when the rows of one user may have several buckets, so that no task sees all of them."""


@dataclass(frozen=True, kw_only=True)
class Together:
    """Rows of one or several tables, those of a user in one task."""

    parts: tuple[DataFrame, ...]
    buckets: Buckets

    def join(self, other: Together, how: str = "inner") -> Together:
        if (self._dealt, len(self.parts)) != (other._dealt, len(other.parts)):
            raise UsersNotTogether(
                what=f"{len(self.parts)} tasks with {self._dealt}, and {len(other.parts)} with {other._dealt}",
                where="a join by bucket",
                next_step="read both tables for the same number of tasks, or join them with a shuffle",
            )
        # Spark would broadcast a small side, by an exchange of its own.
        pairs = zip(self.parts, other.parts, strict=True)
        return replace(self, parts=tuple(left.join(right.hint("merge"), self.buckets.of, how) for left, right in pairs))

    def aggregate(self, by: Sequence[str], *measures: Column) -> Together:
        """Aggregate by columns that include the user, each task its own rows."""
        if self.buckets.of not in by:
            raise UsersNotTogether(
                what=f"rows lie together by {self.buckets.of}, and the groups are by {', '.join(by)}",
                where="an aggregation by bucket",
                next_step=f"group by {self.buckets.of} as well, or use the Distributed Aggregator",
            )
        return self.map(lambda part: part.groupBy(*by).agg(*measures))

    def map(self, change: Callable[[DataFrame], DataFrame]) -> Together:
        """Change the rows of each task; a change looks at single rows, or at rows of one user."""
        return replace(self, parts=tuple(change(part) for part in self.parts))

    def frame(self) -> DataFrame:
        return reduce(DataFrame.union, self.parts)

    @property
    def _dealt(self) -> str:
        return f"{self.buckets.number} buckets of {self.buckets.of}"


def of(digest: Column, number: int) -> Column:
    """Compute the bucket of a value, INT from 0; null for a null."""
    return F.pmod(F.conv(F.substring(digest, 1, _DIGITS), 16, 10).cast("bigint"), F.lit(number)).cast("int")


def read(spark: SparkSession, stored: Stored, *, tasks: int | None = None) -> Together:
    """Read partitions of a table, the rows of a user by one task; at most one per bucket, by default as a shuffle."""
    opened = stored.lake.parts(stored.dataset, stored.version, partitions=stored.partitions)
    buckets = _stated(stored, opened)
    (column,) = opened[0].table.metadata().partition_columns
    shuffled = int(str(spark.conf.get("spark.sql.shuffle.partitions")))
    number = min(buckets.number, shuffled if tasks is None else tasks)
    rows = stored.lake.read(spark, stored.dataset, stored.version).where(F.col(column).isin(*stored.partitions))
    ends = [buckets.number * task // number for task in range(number + 1)]
    parts = [rows.where(_within(buckets, *ends[task : task + 2])).coalesce(1) for task in range(number)]
    return Together(parts=(_checked(parts[0], buckets, stored.dataset), *parts[1:]), buckets=buckets)


def _within(buckets: Buckets, first: int, end: int) -> Column:
    """Return whether a row is of a range of buckets; rows without a bucket are of the first."""
    bucket = F.col(buckets.column)
    inside = (bucket >= first) & (bucket < end)
    return inside if first else inside | bucket.isNull()


def _checked(part: DataFrame, buckets: Buckets, where: str) -> DataFrame:
    user, bucket = F.col(buckets.of), F.col(buckets.column)
    fault = F.raise_error(F.lit(f"{where}: a row has {buckets.of} and no {buckets.column}"))
    return part.withColumn(buckets.of, F.when(user.isNotNull() & bucket.isNull(), fault).otherwise(user))


def _stated(stored: Stored, opened: Sequence[TableSlice]) -> Buckets:
    stated = {part.table.metadata().configuration.get(BUCKETS) for part in opened}
    if len(stated) != 1 or None in stated:
        raise UsersNotTogether(
            what="not all of its tables state the same buckets" if len(stated) > 1 else "its log states no buckets",
            where=f"{stored.dataset}, version {stored.version}",
            next_step="join or group with a shuffle, or publish the older partitions again",
        )
    return Buckets(**json.loads(str(stated.pop())))
