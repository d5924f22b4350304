"""The week's most read posts, as Markdown for the newsletter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone

import dagster as dg

POSTS = 10


@dataclass(frozen=True, kw_only=True)
class PageDay:
    """A page on a day, of whose 24 hours so many were counted; None if that is not known."""

    day: str
    page: str
    events: int
    hours: int | None


def weeks_since(day: str | None) -> dg.WeeklyPartitionsDefinition:
    """Define a partition for each week, by its Monday, from the week of a day on; None: from this week."""
    first = date.fromisoformat(day) if day else datetime.now(timezone.utc).date()
    monday = first - timedelta(days=first.weekday())
    return dg.WeeklyPartitionsDefinition(start_date=monday.isoformat(), day_offset=1)


def days_of(week: str) -> list[str]:
    return [(date.fromisoformat(week) + timedelta(days=ahead)).isoformat() for ahead in range(7)]


def written(week: str, rows: Sequence[PageDay]) -> str:
    """Write the newsletter of a week as Markdown; it names the days that are missing or not complete."""
    views = Counter[str]()
    for row in rows:
        views[row.page] += row.events
    top = sorted(views.items(), key=lambda item: (-item[1], item[0]))[:POSTS]
    lines = [f"# Most read, {week} to {days_of(week)[-1]}", ""]
    if missing := incomplete(week, rows):
        lines += [f"Figures are too small: {'; '.join(missing)}.", ""]
    lines += ["| | post | page views |", "|---|---|---:|"]
    lines += [f"| {place} | {_cell(page)} | {count:,} |" for place, (page, count) in enumerate(top, 1)]
    return "\n".join([*lines, ""])


def incomplete(week: str, rows: Sequence[PageDay]) -> list[str]:
    """Name the days of a week that are missing or lack hours."""
    hours: dict[str, int | None] = {row.day: row.hours for row in rows}
    found = []
    for day in days_of(week):
        if day not in hours:
            found.append(f"{day} is missing")
        elif (there := hours[day]) is None or there < 24:
            found.append(f"{day} has {'an unknown number' if there is None else there} of 24 hours")
    return found


def _cell(page: str) -> str:
    return page.replace("\\", "\\\\").replace("|", "\\|").replace("\r", " ").replace("\n", " ")
