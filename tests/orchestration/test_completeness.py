"""Days and weeks with missing hours are reported as long as hours may still arrive; without Spark.

Pattern: Aligned Fan-In.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path

import dagster as dg
import pytest

from blogdata.evidence.events import EventLog
from blogdata.lake.lake import Lake
from blogdata.orchestration.checks import complete_results
from published import publish
from quality.contracts import CONTRACTS

MONDAY, TUESDAY, WEDNESDAY = "2026-01-05", "2026-01-06", "2026-01-07"
PAGES, REFERRALS = "gold.page_stats", "gold.referral_stats"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(root=str(tmp_path))


def days(lake: Lake, hours: Mapping[str, int], dataset: str = PAGES) -> None:
    """Publish periods computed from this many hours."""
    measures = {period: {"parts": parts} for period, parts in hours.items()}
    publish(lake, dataset, CONTRACTS[dataset].partition_column, dict.fromkeys(hours, 1), measures=measures)


def judged(lake: Lake, now: str, dataset: str = PAGES) -> dg.AssetCheckEvaluation:
    """Evaluate the check as a run does at a given time."""
    with pytest.MonkeyPatch.context() as clock:
        clock.setattr("blogdata.planning.clock.now", lambda: datetime.fromisoformat(now).replace(tzinfo=timezone.utc))
        (result,) = complete_results(CONTRACTS[dataset], EventLog(lake))
    return result


def test_the_newest_day_is_no_warning(lake: Lake) -> None:
    days(lake, {MONDAY: 24, TUESDAY: 14})
    result = judged(lake, f"{TUESDAY}T14:30")
    assert (result.passed, result.description) == (True, f"{TUESDAY} has 14 of 24 hours so far")
    days(lake, {WEDNESDAY: 1})
    result = judged(lake, f"{WEDNESDAY}T01:30")
    assert (result.passed, result.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert result.description == f"{TUESDAY} has 14 of 24 hours; {WEDNESDAY} has 1 of 24 hours so far"


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
