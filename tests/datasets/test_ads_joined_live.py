"""Dynamic Joiner: of what the stream of visits and ads lets go of, each event is published once, with one ad."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from pyspark.sql import SparkSession

from assets.streams import live_ads

FIVE = datetime(2026, 1, 5, 10, 5, tzinfo=timezone.utc)
SCHEMA = (
    "visit_id STRING, ad_id STRING, event_time TIMESTAMP, user_id STRING, keep_private BOOLEAN, page STRING,"
    " display_time TIMESTAMP, campaign STRING, display_page STRING, event_hour STRING,"
    " event_file STRING, event_offset BIGINT, display_file STRING, display_offset BIGINT"
)


def event(visit: str, ad: str, line: int = 0) -> tuple[Any, ...]:
    """Build the joined row of an event without a display."""
    nothing = (None, None, None)
    return (visit, ad, FIVE, "user", False, "/", *nothing, "2026-01-05T10", "visits.json", line, None, None)


def test_of_lines_of_one_event_that_name_two_ads_the_first_counts(spark: SparkSession) -> None:
    rows = spark.createDataFrame([event("v", "other", 100), event("v", "first", 50), event("w", "another", 10)], SCHEMA)
    published = spark.createDataFrame([event("w", "before")], SCHEMA).drop("event_file", "event_offset", "display_file")
    judged = live_ads.judged(rows, published.drop("display_offset")).select("visit_id", "ad_id", "verdict").collect()
    assert {tuple(row) for row in judged} == {
        ("v", "first", "first"),
        ("v", "other", "conflict"),
        ("w", "another", "conflict"),
    }
