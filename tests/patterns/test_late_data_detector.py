from datetime import datetime, timedelta, timezone
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import functions as F

from blogdata.contract.partitions import Grain, between, start_of
from blogdata.patterns.error_management import late_data_detector
from blogdata.patterns.error_management.late_data_detector import (
    PROGRESS,
    Strategy,
    StreamProgress,
    is_late,
    late,
    progress,
    readings_of,
)

ALLOWED = timedelta(minutes=15)
HOURS = between("2026-01-31T00", "2026-01-31T23", Grain.HOUR)


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-01-31T{text}:00+00:00")


@pytest.mark.parametrize(
    ("allowed", "batches"),
    [
        # Table 3-1: the times of each batch, the watermark it is judged by, and its late rows.
        (30, [("10:00 10:05 10:06", None, ""), ("09:20 09:31 10:07", "09:36", "09:20 09:31"), ("", "09:37", "")]),
        # Table 3-2: each row is a batch.
        (60, [("03:15", None, ""), ("03:00", "02:15", ""), ("01:50", "02:15", "01:50"), ("03:11", "02:15", "")]),
        (60, [("03:15 03:11", None, ""), ("04:31", "02:15", ""), ("", "03:31", "")]),
    ],
)
def test_tables_3_1_and_3_2_are_reproduced_as_a_stream(
    allowed: int, batches: list[tuple[str, str | None, str]]
) -> None:
    state = StreamProgress()
    for times, mark, behind in batches:
        assert state.watermark == (at(mark) if mark else None)
        late_times = [time for time in times.split() if state.watermark and at(time) < state.watermark]
        assert late_times == behind.split()
        state = state.advance([("", at(time)) for time in times.split()], timedelta(minutes=allowed))
        assert PROGRESS.validate_python(PROGRESS.dump_python(state, mode="json")) == state, (
            "a restarted stream keeps it"
        )


def test_a_min_stream_waits_for_all_known_sources() -> None:
    state = StreamProgress(seen={"a": None, "b": None}).advance([("a", at("10:00"))], ALLOWED, Strategy.MIN)
    assert state.watermark is None
    state = state.advance([("b", at("09:00"))], ALLOWED, Strategy.MIN)
    assert state.watermark == at("08:45")
    # An unknown source starts behind: the watermark does not move.
    assert state.advance([("c", at("05:00"))], ALLOWED, Strategy.MIN).watermark == at("08:45")


@pytest.mark.parametrize(
    ("of", "strategy", "expected"),
    [
        ("visits", Strategy.MIN, "10:00"),
        ("visits", Strategy.MAX, "10:20"),
        ("", Strategy.MIN, "09:10"),
        ("", Strategy.MAX, "10:40"),
    ],
)
def test_figure_3_4_is_reproduced(of: str, strategy: Strategy, expected: str) -> None:
    times = {"visits/0": "10:00", "visits/1": "10:20", "logs/0": "09:10", "logs/1": "10:40"}
    seen = [(name, at(time)) for name, time in times.items() if name.startswith(of)]
    assert StreamProgress().advance(seen, timedelta(0), strategy).watermark == at(expected)


def test_a_wild_future_time_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    readings = {HOURS[5]: [("", at("06:05") + timedelta(microseconds=1))], HOURS[6]: [("", at("06:30"))]}
    assert progress(readings, ALLOWED, keys=[HOURS[7]]) == {HOURS[5]: None, HOURS[6]: None, HOURS[7]: at("06:15")}
    # The naive way: every later row would be late.
    monkeypatch.setattr(late_data_detector, "CLOCK_TOLERANCE", timedelta(days=40000))
    mark = progress({**readings, HOURS[5]: [("", at("06:00") + timedelta(days=36500))]}, ALLOWED)[HOURS[6]]
    assert mark is not None
    assert mark > at("06:30")


@given(
    st.lists(
        st.tuples(st.sampled_from(HOURS), st.none() | st.integers(-(10**6), 10**6), st.sampled_from("abc")), max_size=40
    ),
    st.sampled_from(Strategy),
)
def test_watermarks_only_advance_and_use_only_the_past(
    drawn: list[tuple[str, int | None, str]], strategy: Strategy
) -> None:
    readings: dict[str, list[tuple[str, datetime | None]]] = {}
    for key, seconds, source in drawn:
        time = None if seconds is None else at("12:00") + timedelta(seconds=seconds)
        readings.setdefault(key, []).append((source, time))
    found = progress(readings, ALLOWED, strategy=strategy, keys=HOURS)
    marks = [found[key] for key in HOURS]
    moved = [mark for mark in marks if mark is not None]
    assert moved == sorted(moved)
    assert marks == [None] * (len(marks) - len(moved)) + moved
    for key, mark in found.items() if strategy is Strategy.MAX else ():
        ends = {hour: start_of(hour, Grain.HOUR) + timedelta(hours=1, minutes=5) for hour in readings if hour < key}
        past = [time for hour, end in ends.items() for _, time in readings[hour] if time and time <= end]
        assert mark == (max(past) - ALLOWED if past else None)


def test_late_rows_are_found_with_their_lateness(spark: Any) -> None:
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
    marks = progress({HOURS[5]: [("", at("06:00"))], HOURS[6]: [("", at("06:10"))]}, ALLOWED)
    late_rows = late(frame, marks, partition="arrival_hour", event_time="event_time").collect()
    assert {row["name"]: row["lateness_seconds"] for row in late_rows} == {
        "late": 60.0,
        "very late": 2 * 86400 + 45 * 60.0,
    }


def test_batches_are_read_by_source_without_wild_times(spark: Any) -> None:
    rows = [
        ("p0", "2026-01-31T06", at("06:10")),
        ("p0", "2026-01-31T06", at("06:10") + timedelta(days=36500)),
        ("p0", "2026-01-31T06", at("07:05")),
        ("p1", "2026-01-31T06", at("07:05") + timedelta(microseconds=1)),
        ("p1", "2026-01-31T06", None),
    ]
    frame = spark.createDataFrame(rows, "partition string, arrival_hour string, event_time timestamp")
    read = partial(readings_of, frame, source=F.col("partition"), partition="arrival_hour", event_time="event_time")
    assert dict(read(taken_in=at("07:30"))) == {"p0": at("07:05"), "p1": None}
    # The partition may itself be ahead of the processing time.
    assert dict(read(taken_in=at("06:05"))) == {"p0": at("06:10"), "p1": None}
    late_rows = frame.where(is_late(F.col("event_time"), at("07:00"))).collect()
    assert [row["event_time"].astimezone(timezone.utc) for row in late_rows] == [at("06:10")]
    assert frame.where(is_late(F.col("event_time"), None)).count() == 0
