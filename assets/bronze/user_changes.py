"""Changed users of a table: how its rows become lines, and which of them hold.

Decisions: a row of bronze.users is a change if a table's file has it, and then `is_deleted` is not null; all others are
of full deliveries. A change whose `updated_at` is null, still to come or not of the day it landed in is a dead letter,
`missing_field:updated_at` or `impossible_time:updated_at`. At one instant the change that landed last holds: the one
in the file with the greatest number, and there the last one.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from blogdata.patterns.idempotency.merger import DELETED

PREFIX = "users_table"
DELTA = "updated_at"


def is_of_table(file: str) -> bool:
    return file.startswith(f"{PREFIX}-")


def is_change() -> Column:
    """Build the condition that a row of bronze.users is a change, and not of a full delivery."""
    return F.col(DELETED).isNotNull()


def instant() -> Column:
    """Build the instant from which a row of bronze.users holds: of a delivery the midnight of its day."""
    return F.coalesce(DELTA, midnight(F.col("load_date")))


def order() -> Column:
    """Build what orders changes of one instant: the number of their file and their place in it; null for others.

    A file without a number, which no loader has written, comes before all that have one.
    """
    number = F.regexp_extract("source_file", r"-(\d+)\.", 1).try_cast("BIGINT")
    return F.when(is_change(), F.struct(number.alias("file"), F.col("source_offset").alias("place")))


def midnight(day: Column) -> Column:
    return F.to_timestamp(F.concat(day, F.lit("T00:00:00Z")))


def deleted(rows: DataFrame) -> int:
    """Count the usable rows that no version of a user stands for: those of the instants at which a user is deleted."""
    at_once = rows.where(F.size("reasons") == 0).groupBy("id", instant()).agg(_ends_deleted(), F.count("id").alias("n"))
    return _sum(at_once.where("is_deleted"))


def gone(rows: DataFrame) -> int:
    """Count the usable rows that no current user stands for: those of users until the last day that ended deleted."""
    daily = rows.where(F.size("reasons") == 0).groupBy("id", "load_date").agg(_ends_deleted(), F.count("id").alias("n"))
    last = F.max(F.when(F.col(DELETED), F.col("load_date"))).over(Window.partitionBy("id"))
    return _sum(daily.withColumn("_last", last).where("load_date <= _last"))


def _ends_deleted() -> Column:
    at = F.struct(instant(), order())
    return F.max_by(F.coalesce(DELETED, F.lit(False)), at).alias(DELETED)


def _sum(groups: DataFrame) -> int:
    (total,) = groups.agg(F.coalesce(F.sum("n"), F.lit(0))).collect()
    return int(total[0])
