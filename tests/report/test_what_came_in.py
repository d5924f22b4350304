"""Arrivals are counted by the format of their lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import published
from assets.report import what_came_in
from blogdata.evidence.events import EventLog
from blogdata.lake.lake import Lake


def test_lines_of_logs_are_counted_by_their_format(tmp_path: Path) -> None:
    lake = Lake(root=str(tmp_path))
    rows: list[list[Any]] = [
        ["2026-01-05T03", "2026-01-05T03", None, "combined", 5],
        ["2026-01-05T03", "2026-01-05T02", "crawler", "combined", 4],
        ["2026-01-05T03", None, None, "log", 1],
        ["2026-01-05T03", "2026-01-05T03", "comment", "comment", 2],
        ["2026-01-05T03", "2026-01-05T03", None, "json", 99],
        ["2026-01-07T23", "2026-01-07T23", None, "combined", 1],
        ["2026-01-07T23", "2026-01-07T23", None, "caddy", 30],
    ]
    hours = {hour: sum(row[-1] for row in rows if row[0] == hour) for hour in ("2026-01-05T03", "2026-01-07T23")}
    published.publish(lake, "bronze.visits", "arrival_hour", hours, breakdowns={"event_hours": rows})
    found = [(one.name, one.lines, one.first, one.last) for one in what_came_in.formats(EventLog(lake))]
    assert found == [
        ("caddy", 30, "2026-01-07", "2026-01-07"),
        ("combined", 10, "2026-01-05", "2026-01-07"),
        ("log", 1, "2026-01-05", "2026-01-05"),
    ]


def test_without_logs_there_are_no_formats(tmp_path: Path) -> None:
    lake = Lake(root=str(tmp_path))
    assert what_came_in.formats(EventLog(lake)) == []
    published.bronze(lake, {"2026-01-05T03": {"2026-01-05T03": 3}})
    assert what_came_in.formats(EventLog(lake)) == []
