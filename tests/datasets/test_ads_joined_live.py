"""Dynamic Joiner: of what the stream of visits and ads lets go of, each event and display is published once."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

from pyspark.sql import Row, SparkSession

from assets.streams import live_ads

START = datetime(2026, 1, 5, 10, tzinfo=timezone.utc)
PLACES = ("event_file", "event_offset", "display_file", "display_offset")
SCHEMA = (
    "visit_id STRING, ad_id STRING, event_time TIMESTAMP, user_id STRING, keep_private BOOLEAN, page STRING,"
    " display_time TIMESTAMP, campaign STRING, display_page STRING, event_hour STRING,"
    " event_file STRING, event_offset BIGINT, display_file STRING, display_offset BIGINT"
)
FIRST, CONFLICT, DUPLICATE = "first", "conflict", "duplicate"


def at(minutes: int | None) -> datetime | None:
    return None if minutes is None else START + timedelta(minutes=minutes)


def row(visit: str, *, ad: str = "ad", event: int | None = None, display: int | None = None, line: int = 0) -> Row:
    """Build a joined row; the times are minutes after ten, None without that side."""
    return Row(
        visit_id=visit,
        ad_id=ad,
        event_time=at(event),
        user_id=None if event is None else "user",
        keep_private=None if event is None else False,
        page=None if event is None else "/",
        display_time=at(display),
        campaign=None if display is None else "campaign",
        display_page=None if display is None else "/",
        event_hour="2026-01-05T10",
        event_file=None if event is None else "visits.json",
        event_offset=None if event is None else line,
        display_file=None if display is None else "ads.json",
        display_offset=None if display is None else line,
    )


def judged(spark: SparkSession, rows: list[Row], published: list[Row]) -> list[tuple[Any, ...]]:
    new, known = (spark.createDataFrame(each, SCHEMA) for each in (rows, published))
    found = live_ads.judged(new, known.drop(*PLACES)).collect()
    return sorted((one.visit_id, one.ad_id, one.verdict) for one in found)


def test_what_was_published_alone_comes_in_no_pair_and_reversely(spark: SparkSession) -> None:
    published = [row("event alone", event=5), row("display alone", display=1), row("pair", event=5, display=1)]
    rows = [
        row("event alone", event=5, display=2),
        row("display alone", event=6, display=1),
        row("pair", event=5, display=1, line=9),
        row("pair", event=5),
        row("new", event=7, display=3),
        row("new and alone", event=7),
    ]
    assert judged(spark, rows, published) == [
        ("display alone", "ad", CONFLICT),
        ("event alone", "ad", CONFLICT),
        ("new", "ad", FIRST),
        ("new and alone", "ad", FIRST),
        ("pair", "ad", CONFLICT),
        ("pair", "ad", DUPLICATE),
    ]


def test_of_lines_of_one_event_that_name_two_ads_the_first_counts(spark: SparkSession) -> None:
    rows = [
        row("v", ad="other", event=5, line=100),
        row("v", ad="first", event=5, line=50),
        row("w", ad="another", event=5, line=10),
    ]
    assert judged(spark, rows, [row("w", ad="before", event=5)]) == [
        ("v", "first", FIRST),
        ("v", "other", CONFLICT),
        ("w", "another", CONFLICT),
    ]
