"""A day of requests is stale when log lines of its hours were added or removed, and skipped without any lines."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

import published
from blogdata.evidence.events import EventLog
from blogdata.lake.lake import Lake
from blogdata.planning.snapshot import Snapshot
from quality.contracts import GRAPH

DATASET, LINES = "gold.requests_daily", "bronze.visits"
MONDAY, TUESDAY = "2026-01-05", "2026-01-06"
((EDGE, READ),) = GRAPH.edges(GRAPH.task_of(DATASET))


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(root=str(tmp_path))


def arrive(lake: Lake, arrival: str, lines: Mapping[str, int], *, line_format: str = "combined") -> int:
    """Publish an arrival with lines of some hours, each hour with a page view and a filtered line."""
    breakdown = [
        [arrival, hour, filtered, line_format, count]
        for hour, rows in lines.items()
        for filtered, count in ((None, 1), ("asset", rows - 1))
    ]
    rows = {arrival: sum(lines.values())}
    return published.publish(lake, LINES, "arrival_hour", rows, breakdowns={"event_hours": breakdown})


def compute(lake: Lake, days: Mapping[str, int], *, read: int) -> None:
    published.publish(lake, DATASET, "event_date", days, inputs={LINES: read})


def behind(lake: Lake) -> list[str]:
    return list(READ.reach.behind(look(lake), EDGE))


def look(lake: Lake) -> Snapshot:
    return Snapshot(Path(lake.root) / "landing", EventLog(lake))


def test_a_day_is_behind_until_it_has_read_all_that_arrived_for_its_hours(lake: Lake) -> None:
    arrive(lake, f"{MONDAY}T23", {f"{MONDAY}T23": 5})
    version = arrive(lake, f"{TUESDAY}T00", {f"{MONDAY}T23": 2, f"{TUESDAY}T00": 3})
    assert behind(lake) == [MONDAY, TUESDAY]
    compute(lake, {MONDAY: 7, TUESDAY: 3}, read=version)
    assert behind(lake) == []
    later = arrive(lake, f"{TUESDAY}T09", {f"{MONDAY}T04": 4})
    # Tuesday has one more present hour.
    assert behind(lake) == [MONDAY, TUESDAY]
    compute(lake, {MONDAY: 11, TUESDAY: 3}, read=later)
    assert behind(lake) == []


def test_a_replay_reaches_the_days_of_the_lines(lake: Lake) -> None:
    arrive(lake, f"{TUESDAY}T00", {f"{MONDAY}T23": 2, f"{TUESDAY}T00": 3})
    arrival = f"{TUESDAY}T00"
    assert READ.reach.reached(look(lake), EDGE, {LINES: {arrival: ""}}, {}) == {MONDAY: arrival, TUESDAY: arrival}
