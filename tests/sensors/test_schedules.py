"""The clock asks for the period that has ended, not for the one that has just begun."""

from __future__ import annotations

from datetime import datetime, timezone

import dagster as dg
import pytest

from assets.gold.fan_in import HOURLY
from assets.partitions import DAYS
from published import enriched, publish
from resources.lake import LakeResource
from sensors.schedules import (
    SCHEDULES,
    daily_at_two,
    referrals_at_half_past_two,
    visits_weekly_on_monday,
    weekly_on_monday,
)


def asked(schedule: dg.ScheduleDefinition, defs: dg.Definitions, moment: datetime) -> list[str]:
    context = dg.build_schedule_context(scheduled_execution_time=moment, repository_def=defs.get_repository_def())
    return [request.tags["dagster/partition"] for request in schedule.evaluate_tick(context).run_requests or ()]


def test_at_two_in_the_morning_yesterday_is_computed(defs: dg.Definitions) -> None:
    assert asked(daily_at_two, defs, datetime(2026, 1, 6, 2, tzinfo=timezone.utc)) == ["2026-01-05"]


def test_on_monday_last_week_is_computed(defs: dg.Definitions) -> None:
    assert asked(weekly_on_monday, defs, datetime(2026, 1, 12, 3, tzinfo=timezone.utc)) == ["2026-01-05"]


def test_at_half_past_two_referrals_take_the_late_rows_of_two_weeks_with_them(
    defs: dg.Definitions, lake: LakeResource
) -> None:
    new, late, final = "2026-01-20", "2026-01-07", "2026-01-05"
    day_of = {day: f"{day}T10" for day in (new, late, final, "2026-01-08")}
    read = enriched(lake.lake, list(day_of.values()), read=0)
    publish(lake.lake, "gold.referral_stats", "event_date", dict.fromkeys(day_of, 1), inputs={HOURLY: read})
    enriched(lake.lake, [day_of[late], day_of[final]], read=0)
    context = dg.build_schedule_context(
        scheduled_execution_time=datetime(2026, 1, 21, 2, 30, tzinfo=timezone.utc),
        repository_def=defs.get_repository_def(),
        resources={"lake": lake},
    )
    requests = referrals_at_half_past_two.evaluate_tick(context).run_requests or ()
    assert [request.tags["dagster/partition"] for request in requests] == [new, late]


def test_on_monday_the_page_views_of_weeks_that_late_rows_still_change_run_too(
    defs: dg.Definitions, lake: LakeResource
) -> None:
    new, late, final = "2026-04-06", "2026-01-05", "2025-12-29"
    read = enriched(lake.lake, [f"{week}T10" for week in (new, late, final)], read=0)
    publish(lake.lake, "gold.visits_weekly", "event_week", dict.fromkeys((new, late, final), 1), inputs={HOURLY: read})
    enriched(lake.lake, [f"{late}T10", f"{final}T10"], read=0)
    context = dg.build_schedule_context(
        scheduled_execution_time=datetime(2026, 4, 13, 3, 30, tzinfo=timezone.utc),
        repository_def=defs.get_repository_def(),
        resources={"lake": lake},
    )
    requests = visits_weekly_on_monday.evaluate_tick(context).run_requests or ()
    assert [request.tags["dagster/partition"] for request in requests] == [new, late]


def test_the_clock_starts_days_weeks_and_the_data_docs_in_utc() -> None:
    assert {schedule.name: schedule.cron_schedule for schedule in SCHEDULES} == {
        "daily_at_two": "0 2 * * *",
        "referrals_at_half_past_two": "30 2 * * *",
        "weekly_on_monday": "0 3 * * 1",
        "visits_weekly_on_monday": "30 3 * * 1",
        "data_docs_at_four": "0 4 * * *",
        "lineage_at_half_past_four": "30 4 * * *",
        "freeze_on_the_first": "0 5 1 * *",
        "retention_at_five": "0 5 * * *",
    }
    assert {schedule.execution_timezone or "UTC" for schedule in SCHEDULES} == {"UTC"}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_dagsters_own_schedule_would_take_the_day_that_has_just_begun() -> None:
    @dg.asset(partitions_def=DAYS)
    def daily() -> None: ...

    naive = dg.build_schedule_from_partitioned_job(dg.define_asset_job("naive", selection=[daily]), hour_of_day=2)
    repository = dg.Definitions(assets=[daily], schedules=[naive]).get_repository_def()
    context = dg.build_schedule_context(
        scheduled_execution_time=datetime(2026, 1, 6, 2, tzinfo=timezone.utc), repository_def=repository
    )
    requests = repository.get_schedule_def("naive_schedule").evaluate_tick(context).run_requests or ()
    assert [request.tags["dagster/partition"] for request in requests] == ["2026-01-06"]
