"""The hand-written script's daily report: the figures of a day, one a row."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def report(visits: DataFrame, dead_letters: DataFrame, ads: DataFrame) -> DataFrame:
    """Count the figures of each day, all of whose hours are there.

    Args:
        visits: Rows of silver.visits_enriched.
        dead_letters: Rows of bronze.dead_letters.
        ads: Rows of silver.ads.
    """
    enriched = visits.withColumn("event_date", F.substring("event_hour", 1, 10))
    counted = enriched.groupBy("event_date").agg(
        F.count(F.lit(1)).alias("views"),
        F.count_distinct("visit_id").alias("visits"),
        F.count_distinct("user_id").alias("visitors"),
    )
    long = counted.unpivot("event_date", ["views", "visits", "visitors"], "metric", "value")
    figures = [
        long.select("event_date", "metric", "value", F.lit(None).alias("detail"), F.lit("silver.visits_enriched")),
        _top(enriched, "top_page", "page"),
        _top(enriched, "top_referrer", "referral_host"),
        _rows(dead_letters, "arrival_hour", "dead_letters", "bronze.dead_letters"),
        _rows(ads, "display_hour", "ad_displays", "silver.ads"),
    ]
    rows = reduce(DataFrame.union, figures).toDF("event_date", "metric", "value", "detail", "source")
    return rows.withColumns({"completeness": F.lit(1.0), "report_completeness": F.lit(1.0)})


def _top(visits: DataFrame, metric: str, column: str) -> DataFrame:
    counted = visits.groupBy("event_date", column).count()
    top = F.min(F.struct(-F.col("count"), column)).alias("top")
    return (
        counted.groupBy("event_date")
        .agg(top)
        .select(
            "event_date", F.lit(metric), -F.col("top.col1"), F.col(f"top.{column}"), F.lit("silver.visits_enriched")
        )
    )


def _rows(table: DataFrame, hour: str, metric: str, source: str) -> DataFrame:
    counted = table.groupBy(F.substring(hour, 1, 10).alias("event_date")).count()
    return counted.select("event_date", F.lit(metric), "count", F.lit(None), F.lit(source))
