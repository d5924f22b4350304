"""Rows of gold.visits_weekly from a simulated landing zone with faults and late rows, without the layers between."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from assets.transforms import weekly_visits
from benchmarks.deployment import Bench
from quality.contracts import CONTRACTS
from quality.contracts.page_views import USER_BUCKETS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WEEKS = 4
CONTRACT = CONTRACTS["gold.visits_weekly"]
_TECHNICAL = "browser STRING, network_type STRING, device_type STRING"
_LANDED = (
    "visit_id STRING, event_time STRING, user_id STRING, keep_private BOOLEAN, page STRING, "
    f"context STRUCT<referral STRING, ad_id STRING, technical STRUCT<{_TECHNICAL}>>, date STRING, hour STRING"
)


@dataclass(frozen=True, kw_only=True)
class Made:
    """The rows.

    Args:
        rows: As those of gold.visits_weekly, or of silver.visits_enriched.
        late: How many of them arrived in a later hour than that of the event.
    """

    rows: DataFrame
    late: int


def make(bench: Bench, visits: int) -> Made:
    """Read about this many page views of some weeks.

    Args:
        bench: The environment.
        visits: Number of simulated visit events; repeated and unusable ones are left out.
    """
    made = enriched(bench, visits, weeks=WEEKS)
    rows = weekly_visits.for_analysts(made.rows, USER_BUCKETS, "benchmark" * 4)
    return Made(rows=rows.withColumn("hours_present", F.lit(168)), late=made.late)


def enriched(bench: Bench, visits: int, *, weeks: int) -> Made:
    """Read about this many page views of some weeks, as those of silver.visits_enriched, with `event_week` STRING.

    Args:
        bench: The environment.
        visits: Number of simulated visit events; repeated and unusable ones are left out.
        weeks: Number of weeks.
    """
    landing = bench.simulated(visits, days=7 * weeks)
    landed = bench.spark.read.schema(_LANDED).json(str(landing / "visits"))
    at = F.try_to_timestamp("event_time")
    week = F.date_trunc("week", at).cast("date").cast("string")
    days = bench.spark.range(1).select(F.lit("2026-01-05").cast("date")).collect()[0][0]
    usable = landed.withColumns({"event_time": at, "event_week": week}).where(
        "visit_id IS NOT NULL AND user_id IS NOT NULL AND page IS NOT NULL AND event_time IS NOT NULL"
    )
    span = (F.col("event_time") >= F.lit(days)) & (F.col("event_time") < F.date_add(F.lit(days), 7 * weeks))
    once = usable.where(span).dropDuplicates(["visit_id", "event_time", "page"])
    arrived = F.concat("date", F.lit("T"), F.lpad("hour", 2, "0"))
    late = once.where(F.date_format("event_time", "yyyy-MM-dd'T'HH") < arrived).count()
    rows = once.select(
        F.date_format("event_time", "yyyy-MM-dd'T'HH").alias("event_hour"),
        *("event_week", "visit_id", "event_time", "page", "user_id", "context.ad_id", "context.technical.*"),
        F.coalesce("keep_private", F.lit(True)).alias("keep_private"),
        F.coalesce(F.try_parse_url("context.referral", F.lit("HOST")), F.lit("direct")).alias("referral_host"),
        *[F.lit(None).cast("string").alias(name) for name in ("device_name", "country")],
        F.lit(False).alias("user_known"),
    )
    return Made(rows=rows, late=late)
