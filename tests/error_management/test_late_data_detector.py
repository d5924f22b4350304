"""Watermarks only move forward, and late rows are reported instead of lost."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from blogdata.patterns.error_management import late_data_detector
from blogdata.patterns.error_management.late_data_detector import advanced, is_late, late, newest_of, watermarks
from blogdata.publish.partitions import Grain, between

ALLOWED = timedelta(minutes=15)
HOURS = between("2026-01-31T00", "2026-01-31T23", Grain.HOUR)


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-01-31T{text}:00+00:00")


def test_table_3_1_is_reproduced_by_hours() -> None:
    # Hours of arrival represent the batches of a stream.
    batches = {
        "2026-01-31T10": [at("10:00"), at("10:05"), at("10:06")],
        "2026-01-31T11": [at("09:20"), at("09:31"), at("10:07")],
    }
    readings = [(key, time) for key, times in batches.items() for time in times]
    found = watermarks(readings, timedelta(minutes=30), keys=["2026-01-31T12"])
    assert found == {"2026-01-31T10": None, "2026-01-31T11": at("09:36"), "2026-01-31T12": at("09:37")}
    mark = found["2026-01-31T11"]
    assert mark is not None
    assert [time for time in batches["2026-01-31T11"] if time < mark] == [at("09:20"), at("09:31")]


def test_table_3_2_is_reproduced_row_by_row() -> None:
    """One hour of lateness is allowed; ten-minute windows wait until the watermark has passed their end."""
    rows: list[tuple[str, str | None, str, list[str], list[str]]] = [
        ("03:15", None, "02:15", ["03:10"], []),
        ("03:00", "02:15", "02:15", ["03:00", "03:10"], []),
        ("01:50", "02:15", "02:15", ["03:00", "03:10"], []),
        ("03:11", "02:15", "02:15", ["03:00", "03:10"], []),
        ("04:31", "02:15", "03:31", ["04:30"], ["03:00", "03:10"]),
    ]
    watermark, buffered, ignored = None, set[datetime](), []
    for time, current, new, waiting, emitted in rows:
        assert watermark == (at(current) if current else None)
        if watermark is not None and at(time) < watermark:
            ignored.append(time)
        else:
            buffered.add(at(time).replace(minute=at(time).minute // 10 * 10))
        watermark = advanced(watermark, at(time), timedelta(hours=1))
        assert watermark == at(new)
        closed = {window for window in buffered if window + timedelta(minutes=10) <= at(new)}
        buffered -= closed
        assert (sorted(buffered), sorted(closed)) == ([at(one) for one in waiting], [at(one) for one in emitted])
    assert ignored == ["01:50"]


@pytest.mark.parametrize("guarded", [True, False])
def test_a_wild_future_time_is_ignored(monkeypatch: pytest.MonkeyPatch, guarded: bool) -> None:
    if not guarded:
        monkeypatch.setattr(late_data_detector, "CLOCK_TOLERANCE", timedelta(days=40000))
    wild = at("06:05") + timedelta(microseconds=1)
    found = watermarks([("2026-01-31T05", wild), ("2026-01-31T06", at("06:05"))], timedelta(0), keys=["2026-01-31T07"])
    assert found["2026-01-31T06"] == (None if guarded else wild)
    assert found["2026-01-31T07"] == (at("06:05") if guarded else wild)


@given(st.lists(st.tuples(st.sampled_from(HOURS), st.one_of(st.none(), st.integers(-(10**6), 10**6))), max_size=40))
def test_watermarks_only_advance_and_use_only_the_past(drawn: list[tuple[str, int | None]]) -> None:
    readings = [(key, None if seconds is None else at("12:00") + timedelta(seconds=seconds)) for key, seconds in drawn]
    found = watermarks(readings, ALLOWED, keys=HOURS)
    for key, mark in found.items():
        past = [
            time
            for hour, time in readings
            if hour < key and time is not None and time <= at(f"{hour[11:]}:00") + timedelta(minutes=65)
        ]
        assert mark == (max(past) - ALLOWED if past else None)


def test_late_rows_are_found_with_their_lateness(spark: SparkSession) -> None:
    rows = [
        ("on time", "2026-01-31T06", at("06:10")),
        ("on the mark", "2026-01-31T06", at("05:45")),
        ("late", "2026-01-31T06", at("05:44")),
        ("very late", "2026-01-31T06", at("05:00") - timedelta(days=2)),
        ("first hour", "2026-01-31T05", at("00:10")),
        ("unknown hour", "2026-01-31T09", at("00:10")),
        ("no time", "2026-01-31T06", None),
    ]
    frame = spark.createDataFrame(rows, "name string, arrival_hour string, event_time timestamp")
    marks = watermarks([("2026-01-31T05", at("06:00")), ("2026-01-31T06", at("06:10"))], ALLOWED)
    found = {
        row["name"]: row for row in late(frame, marks, partition="arrival_hour", event_time="event_time").collect()
    }
    assert {name: row["lateness_seconds"] for name, row in found.items()} == {
        "late": 60.0,
        "very late": 2 * 86400 + 45 * 60.0,
    }
    assert found["late"]["watermark"].astimezone(timezone.utc) == at("05:45")


def test_batches_are_read_without_wild_times(spark: SparkSession) -> None:
    wild = [at("06:10") + timedelta(days=36500), at("07:05") + timedelta(microseconds=1), None]
    rows = [("2026-01-31T06", time) for time in (at("06:10"), at("07:05"), *wild)]
    frame = spark.createDataFrame(rows, "arrival_hour string, event_time timestamp")
    read = partial(newest_of, frame, partition="arrival_hour", event_time="event_time")
    assert read(taken_in=at("07:30")) == at("07:05")
    # The partition may itself be ahead of the processing time.
    assert read(taken_in=at("06:05")) == at("06:10")
    assert read(taken_in=at("06:04")) is None
    late_ones = frame.where(is_late(F.col("event_time"), at("07:00"))).collect()
    assert [row["event_time"].astimezone(timezone.utc) for row in late_ones] == [at("06:10")]
    assert frame.where(is_late(F.col("event_time"), None)).count() == 0
