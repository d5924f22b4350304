"""The clock asks for the period that has ended, not for the one that has just begun."""

from __future__ import annotations

from datetime import datetime, timezone

import dagster as dg
import pytest

from assets.partitions import DAYS
from sensors.schedules import SCHEDULES, daily_at_two, weekly_on_monday


def asked(schedule: dg.ScheduleDefinition, defs: dg.Definitions, moment: datetime) -> list[str]:
    context = dg.build_schedule_context(scheduled_execution_time=moment, repository_def=defs.get_repository_def())
    return [request.tags["dagster/partition"] for request in schedule.evaluate_tick(context).run_requests or ()]


def test_at_two_in_the_morning_yesterday_is_computed(defs: dg.Definitions) -> None:
    assert asked(daily_at_two, defs, datetime(2026, 1, 6, 2, tzinfo=timezone.utc)) == ["2026-01-05"]


def test_on_monday_last_week_is_computed(defs: dg.Definitions) -> None:
    assert asked(weekly_on_monday, defs, datetime(2026, 1, 12, 3, tzinfo=timezone.utc)) == ["2026-01-05"]


def test_the_clock_starts_days_weeks_and_the_data_docs_in_utc() -> None:
    assert {schedule.name: schedule.cron_schedule for schedule in SCHEDULES} == {
        "daily_at_two": "0 2 * * *",
        "weekly_on_monday": "0 3 * * 1",
        "data_docs_at_four": "0 4 * * *",
        "lineage_at_half_past_four": "30 4 * * *",
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
