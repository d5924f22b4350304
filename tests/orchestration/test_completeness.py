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
from blogdata.orchestration.checks import check_specs
from blogdata.orchestration.completeness import complete_results
from blogdata.orchestration.names import asset_key
from blogdata.publish.partitions import Grain, finer
from declared import OF_COMPLETE_WEEKS
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


def judged(lake: Lake, now: str, *datasets: str) -> dg.AssetCheckResult:
    """Evaluate the check as a run does at a given time."""
    contracts = [CONTRACTS[name] for name in datasets or (PAGES,)]
    with pytest.MonkeyPatch.context() as clock:
        clock.setattr("blogdata.planning.clock.now", lambda: datetime.fromisoformat(now).replace(tzinfo=timezone.utc))
        (result,) = complete_results(asset_key(contracts[0].dataset), contracts, EventLog(lake))
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


def test_the_day_at_whose_hour_a_log_ends_is_no_warning(lake: Lake) -> None:
    publish(lake, HOURLY, "event_hour", {f"{TUESDAY}T13": 1})
    days(lake, {MONDAY: 24, TUESDAY: 14})
    result = judged(lake, "2026-11-29T00:00")
    assert (result.passed, result.description) == (True, f"{TUESDAY} has 14 of 24 hours so far")
    # Later rows are of a day without a report yet.
    publish(lake, HOURLY, "event_hour", {f"{WEDNESDAY}T00": 1})
    assert judged(lake, "2026-11-29T00:00").description == f"{TUESDAY} has 14 of 24 hours"


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


def test_many_days_are_counted_and_the_newest_named(lake: Lake) -> None:
    days(lake, {f"2026-01-{day:02d}": 20 for day in range(1, 8)} | {"2026-01-08": 24})
    result = judged(lake, "2026-02-01T00:00")
    told = "; ".join(f"2026-01-0{day} has 20 of 24 hours" for day in (7, 6, 5))
    assert result.description == f"{told}; 4 more lack hours"
    assert result.metadata["periods_lacking_hours"].value == 7


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


def test_days_before_the_first_delivery_give_no_warning(lake: Lake) -> None:
    days(lake, {"2020-03-01": 0, MONDAY: 24, TUESDAY: 0, WEDNESDAY: 24})
    assert judged(lake, f"{WEDNESDAY}T02:00").description == f"{TUESDAY} has 0 of 24 hours"


def test_days_published_without_hour_counts_are_counted(lake: Lake) -> None:
    publish(lake, PAGES, "event_date", {MONDAY: 1})
    days(lake, {TUESDAY: 24})
    result = judged(lake, f"{WEDNESDAY}T02:00")
    assert result.passed
    assert result.metadata["published_before_hours_were_counted"].value == 1


def test_served_days_lack_hours_of_either_dataset(lake: Lake) -> None:
    days(lake, {MONDAY: 24, TUESDAY: 22, WEDNESDAY: 1})
    days(lake, {MONDAY: 23, TUESDAY: 24, WEDNESDAY: 24}, REFERRALS)
    result = judged(lake, "2026-01-08T02:00", PAGES, REFERRALS)
    assert result.description == (
        f"{TUESDAY} has 22 of 24 hours; {MONDAY} has 23 of 24 hours; {WEDNESDAY} has 1 of 24 hours so far"
    )


def test_every_dataset_of_gold_that_may_lack_hours_has_the_check() -> None:
    for name, contract in CONTRACTS.items():
        gathered = contract.layer == "gold" and contract.grain is not Grain.HOUR and name not in OF_COMPLETE_WEEKS
        checks = [spec.name for spec in check_specs(asset_key(name), contract)]
        assert ("complete" in checks) == gathered, name
        assert ("hours_present" in [column.name for column in contract.columns]) == gathered, name
