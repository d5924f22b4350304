"""The week's most read posts, as Markdown for the newsletter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta, timezone
from typing import Any

import dagster as dg

POSTS = 10
Rows = Sequence[Mapping[str, Any]]
"""Rows of gold.page_stats: `event_date`, `page`, `events` and `hours_present`."""


def weeks_since(day: str | None) -> dg.WeeklyPartitionsDefinition:
    """Define a partition for each week, by its Monday, from the week of a day on; None: from this week."""
    first = date.fromisoformat(day) if day else datetime.now(timezone.utc).date()
    monday = first - timedelta(days=first.weekday())
    return dg.WeeklyPartitionsDefinition(start_date=monday.isoformat(), day_offset=1)


def days_of(week: str) -> list[str]:
    return [(date.fromisoformat(week) + timedelta(days=ahead)).isoformat() for ahead in range(7)]


def written(week: str, rows: Rows) -> str:
    """Write the newsletter of a week as Markdown; it names the days that are missing or not complete."""
    views = Counter[str]()
    for row in rows:
        views[row["page"]] += row["events"]
    top = sorted(views.items(), key=lambda item: (-item[1], item[0]))[:POSTS]
    lines = [f"# Most read, {week} to {days_of(week)[-1]}", ""]
    if missing := incomplete(week, rows):
        lines += [f"Figures are too small: {'; '.join(missing)}.", ""]
    lines += ["| | post | page views |", "|---|---|---:|"]
    lines += [f"| {place} | {_cell(page)} | {count:,} |" for place, (page, count) in enumerate(top, 1)]
    return "\n".join([*lines, ""])


def incomplete(week: str, rows: Rows) -> list[str]:
    """Name the days of a week that are missing or lack hours."""
    hours = {row["event_date"]: row["hours_present"] for row in rows}
    found = {day: f"{hours[day]} of 24 hours" if day in hours else "" for day in days_of(week) if hours.get(day) != 24}
    return [f"{day} has {there}" if there else f"{day} is missing" for day, there in found.items()]


def _cell(page: str) -> str:
    return page.replace("\\", "\\\\").replace("|", "\\|").replace("\r", " ").replace("\n", " ")
