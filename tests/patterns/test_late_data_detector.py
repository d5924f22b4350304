"""Watermarks only move forward, and late rows are reported instead of lost."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from blogdata.contract.partitions import Grain, between
from blogdata.patterns.error_management import late_data_detector
from blogdata.patterns.error_management.late_data_detector import (
    PartitionReading,
    Strategy,
    StreamProgress,
    is_late,
    late,
    progress,
    readings_of,
)

SLOWEST = Strategy.MIN
ALLOWED = timedelta(minutes=15)
COLUMNS = {"partition": "arrival_hour", "event_time": "event_time"}
HOURS = between("2026-01-31T00", "2026-01-31T23", Grain.HOUR)


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-01-31T{text}:00+00:00")


def reading(hour: str, time: str | None, source: str = "") -> PartitionReading:
    return PartitionReading(key=f"2026-01-31T{hour}", max_event_time=at(time) if time else None, source=source)


def test_table_3_1_is_reproduced_by_hours() -> None:
    # Hours of arrival represent the batches of a stream.
    batches = {
        "2026-01-31T10": [at("10:00"), at("10:05"), at("10:06")],
        "2026-01-31T11": [at("09:20"), at("09:31"), at("10:07")],
    }
    readings = [PartitionReading(key=key, max_event_time=max(times)) for key, times in batches.items()]
    found = progress(readings, timedelta(minutes=30), keys=["2026-01-31T12"]).watermarks
    assert found == {"2026-01-31T10": None, "2026-01-31T11": at("09:36"), "2026-01-31T12": at("09:37")}
    mark = found["2026-01-31T11"]
    assert mark is not None
    assert [time for time in batches["2026-01-31T11"] if time < mark] == [at("09:20"), at("09:31")]


def test_table_3_1_is_reproduced_as_a_stream() -> None:
    rows = [
        (["10:00", "10:05", "10:06"], None, "09:36", []),
        (["09:20", "09:31", "10:07"], "09:36", "09:37", ["09:20", "09:31"]),
    ]
    state = StreamProgress()
    for times, mark, output, ignored in rows:
        assert state.watermark == (at(mark) if mark else None)
        behind = [time for time in times if state.watermark is not None and at(time) < state.watermark]
        assert behind == ignored
        state = state.advance([("", at(time)) for time in times], timedelta(minutes=30))
        assert state.watermark == at(output)


def test_table_3_2_is_reproduced_row_by_row() -> None:
    """One hour of lateness is allowed; ten-minute windows wait until the watermark has passed their end."""
    rows: list[tuple[str, str | None, str, list[str], list[str]]] = [
        ("03:15", None, "02:15", ["03:10"], []),
        ("03:00", "02:15", "02:15", ["03:00", "03:10"], []),
        ("01:50", "02:15", "02:15", ["03:00", "03:10"], []),
        ("03:11", "02:15", "02:15", ["03:00", "03:10"], []),
        ("04:31", "02:15", "03:31", ["04:30"], ["03:00", "03:10"]),
    ]
    state, buffered, ignored = StreamProgress(), set[datetime](), []
    for time, current, new, waiting, emitted in rows:
        assert state.watermark == (at(current) if current else None)
        if state.watermark is not None and at(time) < state.watermark:
            ignored.append(time)
        else:
            buffered.add(at(time).replace(minute=at(time).minute // 10 * 10))
        state = state.advance([("", at(time))], timedelta(hours=1))
        assert state.watermark == at(new)
        closed = {window for window in buffered if window + timedelta(minutes=10) <= at(new)}
        buffered -= closed
        assert (sorted(buffered), sorted(closed)) == ([at(one) for one in waiting], [at(one) for one in emitted])
    assert ignored == ["01:50"]


def test_a_restarted_stream_keeps_its_watermark() -> None:
    state = StreamProgress().advance([("a", at("10:00")), ("b", None)], ALLOWED)
    kept = StreamProgress.of_json(json.loads(json.dumps(state.as_json())))
    assert kept == state
    assert kept.advance([("a", at("09:00"))], ALLOWED).watermark == state.watermark


def test_a_min_stream_waits_for_all_known_sources() -> None:
    state = StreamProgress(seen={"a": None, "b": None})
    state = state.advance([("a", at("10:00"))], ALLOWED, SLOWEST)
    assert state.watermark is None
    state = state.advance([("b", at("09:00"))], ALLOWED, SLOWEST)
    assert state.watermark == at("08:45")
    # An unknown source starts behind: the watermark does not move.
    assert state.advance([("c", at("05:00"))], ALLOWED, SLOWEST).watermark == at("08:45")


def test_a_wild_future_time_is_ignored_and_named() -> None:
    wild = PartitionReading(key="2026-01-31T05", max_event_time=at("06:05") + timedelta(microseconds=1))
    found = progress([wild, reading("06", "06:30")], ALLOWED, keys=["2026-01-31T07"])
    assert found.ignored == (wild,)
    assert found.watermarks["2026-01-31T06"] is None
    assert found.watermarks["2026-01-31T07"] == at("06:15")


def test_an_unguarded_wild_time_makes_later_rows_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(late_data_detector, "CLOCK_TOLERANCE", timedelta(days=40000))
    wild = PartitionReading(key="2026-01-31T05", max_event_time=at("06:00") + timedelta(days=36500))
    found = progress([wild, reading("06", "06:30")], ALLOWED)
    mark = found.watermarks["2026-01-31T06"]
    assert mark is not None
    assert mark > at("06:30")


# Figure 3-4: the greatest event times that the partitions of two sources have seen so far.
SEEN = {"visits/0": "10:00", "visits/1": "10:20", "logs/0": "09:10", "logs/1": "10:40"}


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
    seen = [(name, at(time)) for name, time in SEEN.items() if name.startswith(of)]
    assert StreamProgress().advance(seen, timedelta(0), strategy).watermark == at(expected)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(HOURS),
            st.one_of(st.none(), st.integers(-(10**6), 10**6)),
            st.sampled_from(["a", "b", "c"]),
        ),
        max_size=40,
    ),
    st.sampled_from(Strategy),
)
def test_watermarks_only_advance_and_use_only_the_past(
    drawn: list[tuple[str, int | None, str]], strategy: Strategy
) -> None:
    readings = [
        PartitionReading(
            key=key,
            source=source,
            max_event_time=None if seconds is None else at("12:00") + timedelta(seconds=seconds),
        )
        for key, seconds, source in drawn
    ]
    found = progress(readings, ALLOWED, strategy=strategy, keys=HOURS)
    marks = [found.watermarks[key] for key in HOURS]
    moved = [mark for mark in marks if mark is not None]
    assert moved == sorted(moved)
    assert marks == [None] * (len(marks) - len(moved)) + moved
    believed = [one for one in readings if one not in found.ignored and one.max_event_time is not None]
    if strategy is Strategy.MAX:
        for key, mark in found.watermarks.items():
            past = [one.max_event_time for one in believed if one.key < key and one.max_event_time is not None]
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
    marks = progress([reading("05", "06:00"), reading("06", "06:10")], ALLOWED).watermarks
    found = {row["name"]: row for row in late(frame, marks, **COLUMNS).collect()}
    assert {name: row["lateness_seconds"] for name, row in found.items()} == {
        "late": 60.0,
        "very late": 2 * 86400 + 45 * 60.0,
    }
    assert found["late"]["watermark"].astimezone(timezone.utc) == at("05:45")


def test_batches_are_read_by_source_without_wild_times(spark: SparkSession) -> None:
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
    found = read(taken_in=at("06:05"))
    assert dict(found) == {"p0": at("06:10"), "p1": None}
    assert StreamProgress().advance(found, ALLOWED).watermark == at("05:55")
    assert StreamProgress().advance(found, ALLOWED, SLOWEST).watermark is None
    assert dict(read(taken_in=at("06:04"))) == {"p0": None, "p1": None}
    late_ones = frame.where(is_late(F.col("event_time"), at("07:00"))).collect()
    assert [row["event_time"].astimezone(timezone.utc) for row in late_ones] == [at("06:10")]
    assert frame.where(is_late(F.col("event_time"), None)).count() == 0
