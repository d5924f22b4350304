"""A visit of page views of a log has one id, whichever hours are computed together."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from pyspark.sql import DataFrame, SparkSession

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


def test_a_visit_crossing_hours_keeps_its_id(spark: SparkSession) -> None:
    whole = [("a", -20.0), ("a", 5.0), ("a", 20.0), ("b", 50.0)]
    at_once = dict(zip(whole, ids(log_visits.with_visit_ids(views(spark, whole), views(spark, []), "k")), strict=True))
    target, before = views(spark, whole[1:], first_line=1), views(spark, whole[:1])
    assert ids(log_visits.with_visit_ids(target, before, "k")) == [at_once[view] for view in whole[1:]]
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
