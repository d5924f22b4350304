"""A schedule requests the period that has ended, not the one that has just begun."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from blogdata.planning.staleness import Scope
from blogdata.runs.lake_resource import DeploymentResource, LakeResource
from declared import DAILY, WEEKLY
from published import enriched, publish, stale
from sensors.schedules import schedules

HOURLY = "silver.visits_enriched"
SCHEDULES = schedules()
NIGHT, WEEK = SCHEDULES[:2]


def asked(schedule: dg.ScheduleDefinition, *moment: int) -> dict[str, Any]:
    """Return the request of a tick."""
    due = datetime(*moment, tzinfo=timezone.utc)  # type: ignore[misc, arg-type]
    (request,) = schedule.evaluate_tick(dg.build_schedule_context(scheduled_execution_time=due)).run_requests or ()
    return dict(request.run_config["resources"]["request"]["config"])


def ended(lake: LakeResource, dataset: str, *moment: int) -> list[str]:
    """Return the partitions that a scheduled run computes at a given time."""
    with pytest.MonkeyPatch.context() as clock:
        clock.setattr("blogdata.planning.clock.now", lambda: datetime(*moment, tzinfo=timezone.utc))  # type: ignore[misc, arg-type]
        return stale(lake.lake, dataset, Scope.ENDED)


def test_a_schedule_requests_its_datasets_in_one_run() -> None:
    night = asked(NIGHT, 2026, 1, 6, 2)
    assert night["scope"] == "ended"
    assert night["datasets"] == list(DAILY)
    week = asked(WEEK, 2026, 1, 12, 3)
    assert {*week["datasets"]} == {*WEEKLY, "gold.visits_snowflake_views", "gold.visits_shared"}


def test_incomplete_days_are_computed_at_night(lake: LakeResource) -> None:
    read = enriched(lake.lake, ["2026-01-02T10", "2026-01-05T10"], read=0)
    publish(lake.lake, "gold.page_stats", "event_date", {"2026-01-02": 1}, inputs={HOURLY: read})
    enriched(lake.lake, ["2026-01-02T10", "2026-01-06T01"], read=0)
    # The current day is not requested.
    assert ended(lake, "gold.page_stats", 2026, 1, 6, 2) == ["2026-01-02", "2026-01-05"]
    assert ended(lake, "gold.visits_cube_weekly", 2026, 1, 6, 2) == ["2025-12-29"]


def test_nightly_run_takes_two_weeks_of_late_rows(lake: LakeResource) -> None:
    # The first day of the window is included, although the current day has rows already.
    new, late, final = "2026-01-20", "2026-01-06", "2026-01-05"
    day_of = {day: f"{day}T10" for day in (new, late, final, "2026-01-08")}
    read = enriched(lake.lake, [day_of[late], day_of[final], day_of["2026-01-08"]], read=0)
    known = dict.fromkeys((late, final, "2026-01-08"), 1)
    publish(lake.lake, "gold.referral_stats", "event_date", known, inputs={HOURLY: read})
    enriched(lake.lake, [day_of[new], day_of[late], day_of[final], "2026-01-21T01"], read=0)
    assert ended(lake, "gold.referral_stats", 2026, 1, 21, 2, 30) == [late, new]


def test_copies_are_scheduled_where_a_folder_is_named(tmp_path: Path) -> None:
    (tick,) = (schedule for schedule in SCHEDULES if schedule.name == "replicate_at_half_past_five")

    def requested() -> int:
        resources = {"deployment": DeploymentResource(home=str(tmp_path))}
        return len(tick.evaluate_tick(dg.build_schedule_context(resources=resources)).run_requests or ())

    assert requested() == 0
    (tmp_path / "blogdata.toml").write_text(f'[staging]\nfolder = "{tmp_path}"\ngroup = "x"\n')
    assert requested() == 1
