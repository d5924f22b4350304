"""Page views of a visitor are one visit until 30 minutes of silence, whichever hours are computed together."""

from __future__ import annotations

import random
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from assets.silver import log_visits

VIEWS = (
    "user_id string, event_time timestamp, visit_id string, page string,"
    " arrival_hour string, source_file string, source_offset bigint"
)


START = datetime(2015, 5, 17, 10, tzinfo=timezone.utc)


def views(spark: SparkSession, minutes: list[tuple[str, float]], *, first_line: int = 0) -> DataFrame:
    """Make page views, appended to one file in the order given."""
    rows = [
        (user, START + timedelta(minutes=minute), None, "/", "2015-05-17T10", "a.log", first_line + number)
        for number, (user, minute) in enumerate(minutes)
    ]
    return spark.createDataFrame(rows, VIEWS)


def ids(frame: DataFrame) -> list[str]:
    return [row["visit_id"] for row in frame.orderBy("user_id", "event_time").collect()]


def test_a_visit_ends_after_thirty_minutes_of_silence(spark: SparkSession) -> None:
    frame = views(spark, [("a", 0), ("a", 30), ("a", 30), ("a", 60), ("a", 90.001), ("b", 30)])
    found = ids(log_visits.with_visit_ids(frame, frame.limit(0), "k"))
    # A line that landed twice has the id of its first one, and is left out as a duplicate.
    assert found[0] == found[1] == found[2] == found[3]
    assert len(set(found)) == 3


def test_a_visit_crossing_hours_keeps_its_id(spark: SparkSession) -> None:
    whole = [("a", -20.0), ("a", 5.0), ("a", 20.0), ("b", 50.0)]
    at_once = dict(zip(whole, ids(log_visits.with_visit_ids(views(spark, whole), views(spark, []), "k")), strict=True))
    target, before = views(spark, whole[1:], first_line=1), views(spark, whole[:1])
    assert ids(log_visits.with_visit_ids(target, before, "k")) == [at_once[one] for one in whole[1:]]
    alone = ids(log_visits.with_visit_ids(target, before.limit(0), "k"))
    assert alone[0] != at_once[whole[0]]


def test_the_edge_is_touched_while_rows_could_join(spark: SparkSession) -> None:
    target = views(spark, [("a", 5), ("b", 50)])
    nothing = views(spark, [])
    end = START + timedelta(hours=1)
    assert log_visits.touches_edge(target, nothing, START, None)
    assert not log_visits.touches_edge(target, nothing, START - timedelta(minutes=25), None)
    before = views(spark, [("a", -20), ("c", -59)])
    assert log_visits.touches_edge(target, before, START - timedelta(minutes=25), None)
    assert not log_visits.touches_edge(target, before, START - timedelta(hours=1), None)
    assert log_visits.touches_edge(target, nothing, None, end + timedelta(minutes=20))
    assert not log_visits.touches_edge(target, nothing, None, end + timedelta(minutes=20, seconds=1))
    assert not log_visits.touches_edge(target, nothing, None, None)


@pytest.mark.campaign
def test_visits_computed_hourly_equal_visits_computed_together(spark: SparkSession) -> None:
    draw = random.Random(3)
    moments = sorted({(draw.choice("abcdef"), draw.randrange(0, 6 * 60 * 4) / 4) for _ in range(150)})
    draw.shuffle(moments)
    frame = views(spark, moments).cache()
    everything = {
        (row["user_id"], row["event_time"]): row["visit_id"]
        for row in log_visits.with_visit_ids(frame, frame.limit(0), "k").collect()
    }
    piecewise: dict[Any, str] = {}
    for hour in range(6):
        begin, end = START + timedelta(hours=hour), START + timedelta(hours=hour + 1)
        target = frame.where((F.col("event_time") >= F.lit(begin)) & (F.col("event_time") < F.lit(end)))
        look = timedelta(hours=1)
        while True:
            since, until = begin - look, end + look
            inside = (F.col("event_time") >= F.lit(since)) & (F.col("event_time") < F.lit(until))
            around = frame.where(inside).exceptAll(target)
            edges = (since if since > START else None, until if until < START + timedelta(hours=6) else None)
            if not log_visits.touches_edge(target, around, *edges):
                break
            look += timedelta(hours=1)
        for row in log_visits.with_visit_ids(target, around, "k").collect():
            piecewise[row["user_id"], row["event_time"]] = row["visit_id"]
    frame.unpersist()
    assert piecewise == everything
