"""Counts the visitors of a year, and those who had come before, without a shuffle (Bucket)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from blogdata.lake.lake import Lake
from blogdata.lake.members import Member
from blogdata.lake.stored import Stored
from blogdata.patterns.idempotency.fast_metadata_cleaner import Frozen
from blogdata.patterns.storage import bucket
from blogdata.patterns.storage.bucket import Together, UsersNotTogether

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DATASET = "gold.visits_weekly"
_YEAR = len("2026")


@dataclass(frozen=True, kw_only=True)
class Returning:
    """Visitors of some weeks, without those who asked not to be shared."""

    visitors: int
    returned: int


def of(spark: SparkSession, lake: Lake, year: Frozen, visible: Sequence[Member]) -> str:
    """Count the visitors of a frozen year, and those of them who had come in the year before, in words."""
    before = str(int(year.partitions[0][:_YEAR]) - 1)
    earlier = [week for member in visible for week in member.partitions if week.startswith(before)]
    try:
        found = count(spark, lake, year.version, year.partitions, earlier)
    except UsersNotTogether as error:
        return f"visitors not counted, {error.what}"
    return f"{found.visitors:,}, of whom {found.returned:,} had come in the year before"


def count(spark: SparkSession, lake: Lake, version: int, weeks: Sequence[str], earlier: Sequence[str]) -> Returning:
    """Count the visitors of some weeks.

    Args:
        earlier: The weeks before; none of them needs to be.

    Raises:
        UsersNotTogether: Some of the weeks are older than the buckets.
    """
    visitors = _visitors(spark, lake, version, weeks)
    if not earlier:
        return Returning(visitors=visitors.frame().count(), returned=0)
    before = _visitors(spark, lake, version, earlier).each(lambda part: part.withColumnRenamed("views", "before"))
    views = visitors.join(before, "left").frame()
    found = views.agg(F.count(F.lit(1)).alias("visitors"), F.count("before").alias("returned")).collect()[0]
    return Returning(visitors=found["visitors"], returned=found["returned"])


def _visitors(spark: SparkSession, lake: Lake, version: int, weeks: Sequence[str]) -> Together:
    stored = Stored(lake=lake, dataset=DATASET, version=version, partitions=weeks)
    visits = bucket.read(spark, stored).each(lambda part: part.where(F.col("user_id").isNotNull()))
    return visits.aggregate(("user_id",), F.count(F.lit(1)).alias("views"))
