"""Days and weeks with missing hours are reported as long as hours may still arrive; without Spark.

Pattern: Aligned Fan-In.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from blogdata.evidence.events import EventLog
from blogdata.lake.lake import Lake
from blogdata.orchestration.completeness import complete_results
from blogdata.orchestration.names import asset_key
from blogdata.publish.partitions import Grain, finer
from published import publish
from quality.contracts import CONTRACTS

MONDAY, TUESDAY, WEDNESDAY = "2026-01-05", "2026-01-06", "2026-01-07"
HOURLY = "silver.visits_enriched"
PAGES, REFERRALS, CUBE = "gold.page_stats", "gold.referral_stats", "gold.visits_cube_weekly"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(root=str(tmp_path))


def days(lake: Lake, hours: Mapping[str, int | None], dataset: str = PAGES, **more: Any) -> None:
    """Publish periods computed from this many hours; None: without a row."""
    column = CONTRACTS[dataset].partition_column
    rows = {period: 0 if parts is None else 1 for period, parts in hours.items()}
    measures = {period: {"parts": parts} for period, parts in hours.items()}
    publish(lake, dataset, column, rows, measures=measures, **more)


def judged(lake: Lake, now: str, dataset: str = PAGES) -> dg.AssetCheckResult:
    """Evaluate the check as a run does at a given time."""
    with pytest.MonkeyPatch.context() as clock:
        clock.setattr("blogdata.planning.clock.now", lambda: datetime.fromisoformat(now).replace(tzinfo=timezone.utc))
        (result,) = complete_results(asset_key(dataset), CONTRACTS[dataset], EventLog(lake))
    return result


def test_a_day_that_is_running_is_no_warning(lake: Lake) -> None:
    publish(lake, HOURLY, "event_hour", {f"{WEDNESDAY}T00": 1})
    days(lake, {MONDAY: 24, TUESDAY: 14})
    result = judged(lake, f"{TUESDAY}T14:30")
    assert (result.passed, result.description) == (True, f"{TUESDAY} has 14 of 24 hours so far")
    # It warns from the day's end on, not one moment earlier.
    assert judged(lake, f"{TUESDAY}T23:59:59").passed
    result = judged(lake, f"{WEDNESDAY}T00:00")
    assert (result.passed, result.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert result.description == f"{TUESDAY} has 14 of 24 hours"


def test_a_week_runs_until_its_sunday_is_over(lake: Lake) -> None:
    days(lake, {MONDAY: 167, "2026-01-12": 168}, CUBE)
    assert judged(lake, "2026-01-11T23:00", CUBE).description == f"{MONDAY} has 167 of 168 hours so far"
    assert judged(lake, "2026-01-12T00:00", CUBE).description == f"{MONDAY} has 167 of 168 hours"


def test_a_complete_day_hides_no_earlier_incomplete_one(lake: Lake) -> None:
    days(lake, {MONDAY: 23})
    days(lake, {TUESDAY: 24})
    result = judged(lake, f"{WEDNESDAY}T02:00")
    assert (result.passed, result.description) == (False, f"{MONDAY} has 23 of 24 hours")
    assert result.metadata["by_period"].value == {MONDAY: "23 of 24"}
    # The warning stands until the day is recomputed with all hours.
    days(lake, {MONDAY: 24})
    assert judged(lake, f"{WEDNESDAY}T02:00").passed


def test_final_days_give_no_completeness_warning(lake: Lake) -> None:
    days(lake, {MONDAY: 23, "2026-01-20": 24}, REFERRALS)
    assert not judged(lake, "2026-01-20T12:00", REFERRALS).passed, "its lookback is two weeks"
    assert judged(lake, "2026-01-21T12:00", REFERRALS).passed


@pytest.mark.parametrize(("there", "passed"), [(24, True), (23, False)])
def test_an_empty_day_counts_its_published_hours(lake: Lake, there: int, passed: bool) -> None:
    hours = finer(MONDAY, Grain.DAY, Grain.HOUR)
    read = publish(lake, HOURLY, "event_hour", dict.fromkeys(hours[:there], 0))
    days(lake, {MONDAY: None}, inputs={HOURLY: read})
    # An hour that arrived since makes the day stale, not complete.
    publish(lake, HOURLY, "event_hour", dict.fromkeys(hours[there:], 0) or {f"{TUESDAY}T00": 0})
    days(lake, {TUESDAY: 24})
    result = judged(lake, f"{WEDNESDAY}T02:00")
    assert result.passed is passed
    assert result.description == (None if passed else f"{MONDAY} has 23 of 24 hours")
