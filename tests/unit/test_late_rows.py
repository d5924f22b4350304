"""Late rows make exactly the event hours stale that they touch, and late users the hours of their visits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from blogdata.ledger.events import EventLog
from blogdata.patterns.error_management.late_data_detector import Strategy
from blogdata.table.lake import Lake
from published import bronze, planner, publish, silver
from quality.contracts import GRAPH
from quality.contracts.visits import WATERMARK


def lacking(lake: Lake, dataset: str = "silver.visits") -> dict[str, str]:
    return planner(lake).stale(GRAPH.task_of(dataset))


def hours(lake: Lake, dataset: str = "silver.visits") -> list[str]:
    return list(lacking(lake, dataset))


@pytest.fixture
def settled(lake: Lake) -> Lake:
    read = bronze(lake, {f"2026-01-05T0{hour}": {f"2026-01-05T0{hour}": 10} for hour in (1, 2, 3)})
    silver(lake, {f"2026-01-05T0{hour}": 10 for hour in (1, 2, 3)}, read=read)
    return lake


def test_outdated_hours_rerun_until_computed_from_newer_rows(settled: Lake) -> None:
    before = settled.version("bronze.visits")
    assert before is not None
    read = bronze(settled, {"2026-01-05T04": {"2026-01-05T02": 1}})
    late = {"2026-01-05T02": 11, "2026-01-05T04": 0}
    by = silver(settled, late, read=read, makes_stale={"2026-01-05T02": ["2026-01-05T03"]})
    assert lacking(settled) == {"2026-01-05T03": f"outdated by version {by}"}
    # Published later, and computed from the rows that had arrived before.
    silver(settled, {"2026-01-05T03": 10}, read=before)
    assert hours(settled) == ["2026-01-05T03"]
    silver(settled, {"2026-01-05T03": 10}, read=read)
    assert not hours(settled)


def test_a_moved_watermark_makes_its_hour_stale(lake: Lake) -> None:
    first, second = "2026-01-05T01", "2026-01-05T02"
    arrived(lake, first, until="2026-01-05T01:50:00Z")
    read = arrived(lake, second, until="2026-01-05T02:50:00Z")
    judged(lake, {first: "no watermark", second: "watermark 2026-01-05T01:35:00+00:00"}, read=read)
    assert hours(lake, "silver.late_visits") == []
    read = arrived(lake, first, until="2026-01-05T01:58:00Z")
    judged(lake, {first: "no watermark"}, read=read)
    assert lacking(lake, "silver.late_visits") == {second: "watermark 2026-01-05T01:43:00+00:00"}
    judged(lake, {second: "watermark 2026-01-05T01:43:00+00:00"}, read=read)
    assert hours(lake, "silver.late_visits") == []


@pytest.mark.parametrize(("strategy", "mark"), [(Strategy.MAX, "01:43"), (Strategy.MIN, "01:05")])
def test_visits_and_access_logs_make_one_watermark_as_declared(lake: Lake, strategy: Strategy, mark: str) -> None:
    """Figure 3-4 with two sources: logs that are delivered late hold the watermark back under MIN."""
    first, second = "2026-01-05T01", "2026-01-05T02"
    arrived(lake, first, until="2026-01-05T01:58:00Z", logged="2026-01-05T01:20:00Z")
    arrived(lake, second, until="2026-01-05T02:50:00Z", logged=None)
    declared = replace(WATERMARK, combined=strategy)
    found = declared.marks(EventLog(lake).publications("bronze.visits"), [first, second])
    assert found == {first: "no watermark", second: f"watermark 2026-01-05T{mark}:00+00:00"}


def arrived(lake: Lake, hour: str, *, until: str, **more: str | None) -> int:
    """Publish an hour of bronze.visits with the given times of its latest event, and line of an access log."""
    measures = {"max_event_time": until, **({"max_logged_time": more["logged"]} if more else {})}
    return publish(lake, "bronze.visits", "arrival_hour", {hour: 1}, measures={hour: measures})


def judged(lake: Lake, marks: dict[str, str], *, read: int) -> None:
    rows = dict.fromkeys(marks, 1)
    publish(lake, "silver.late_visits", "arrival_hour", rows, landed=marks, inputs={"bronze.visits": read})
