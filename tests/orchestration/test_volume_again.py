"""Which quiet days are published: those that readers see already, and those that no earlier weeks tell of."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from pathlib import Path

import pytest

import published
from blogdata.evidence.events import EventLog
from blogdata.lake.commit import Account
from blogdata.lake.lake import Lake
from blogdata.orchestration.volume import volume_audits
from quality.contracts import CONTRACTS

PAGES = CONTRACTS["gold.page_stats"]
BEGIN = date(2026, 1, 5)
MONDAY, TUESDAY = "2026-02-02", "2026-02-03"
WHOLE, HALF_A_DAY = {"parts": 24}, {"parts": 12}


def publish(lake: Lake, rows: Mapping[str, int], parts: Mapping[str, int] = WHOLE) -> None:
    published.publish(lake, PAGES.dataset, PAGES.partition_column, rows, measures={day: dict(parts) for day in rows})


def refused(lake: Lake, day: str, rows: int) -> bool:
    audits = volume_audits(PAGES, EventLog(lake), {day: Account(rows_in=rows)}, run_id="the next run")
    return any(day in audit.expression for audit in audits)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Four usual weeks."""
    made = Lake(root=str(tmp_path))
    publish(made, {str(BEGIN + timedelta(days=day)): 10_000 for day in range(28)})
    return made


def test_a_quiet_day_that_is_published_is_computed_again(lake: Lake) -> None:
    assert refused(lake, MONDAY, 4_000)
    publish(lake, {MONDAY: 4_000})
    assert not refused(lake, MONDAY, 4_000), "its contract changed"
    assert not refused(lake, MONDAY, 4_100), "late rows came"
    assert not refused(lake, MONDAY, 3_900), "another rule leaves more rows out"
    assert refused(lake, MONDAY, 2_000), "half of what readers see is gone"
    assert refused(lake, TUESDAY, 4_000), "the next day is judged for itself"


def test_a_usual_day_does_not_lose_half_of_its_rows(lake: Lake) -> None:
    publish(lake, {MONDAY: 10_000})
    assert refused(lake, MONDAY, 4_000)


def test_a_day_that_was_published_unfinished_is_judged_once_it_is_whole(lake: Lake) -> None:
    publish(lake, {MONDAY: 4_000}, HALF_A_DAY)
    assert refused(lake, MONDAY, 4_000)


def test_the_quiet_weekends_of_a_new_blog_are_published(tmp_path: Path) -> None:
    """Read at work: one fifth of the rows on a weekend; each day is published by a run of its own."""
    new = Lake(root=str(tmp_path))
    for number in range(28):
        day, rows = str(BEGIN + timedelta(days=number)), 400 if number % 7 > 4 else 2_000
        assert not refused(new, day, rows), day
        publish(new, {day: rows})
    assert refused(new, MONDAY, 400), "three weeks tell what is usual on a Monday"
