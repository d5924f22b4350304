"""The clock asks for the period that has ended, not for the one that has just begun."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import dagster as dg
import pytest

from assets.gold.fan_in import HOURLY
from assets.partitions import DAYS
from assets.plan import STALENESS
from published import enriched, publish
from resources.lake import LakeResource
from sensors.schedules import (
    SCHEDULES,
    daily_at_two,
    referrals_at_half_past_two,
    visits_weekly_on_monday,
    weekly_on_monday,
)


def asked(
    schedule: dg.ScheduleDefinition,
    defs: dg.Definitions,
    lake: LakeResource,
    *moment: int,
    now: datetime | None = None,
) -> list[str]:
    """Give what a tick asks for that is evaluated in time, or at another moment."""
    due = datetime(*moment, tzinfo=timezone.utc)  # type: ignore[misc, arg-type]
    context = dg.build_schedule_context(
        scheduled_execution_time=due, repository_def=defs.get_repository_def(), resources={"lake": lake}
    )
    with pytest.MonkeyPatch.context() as clock:
        for module in ("sensors.schedules", "orchestration.finality"):
            clock.setattr(f"{module}._now", lambda: now or due + timedelta(seconds=1))
        found = schedule.evaluate_tick(context).run_requests or ()
    return [request.tags["dagster/partition"] for request in found]


def test_at_two_in_the_morning_yesterday_is_computed(defs: dg.Definitions, lake: LakeResource) -> None:
    assert asked(daily_at_two, defs, lake, 2026, 1, 6, 2) == ["2026-01-05"]


def test_on_monday_last_week_is_computed(defs: dg.Definitions, lake: LakeResource) -> None:
    assert asked(weekly_on_monday, defs, lake, 2026, 1, 12, 3) == ["2026-01-05"]


def test_late_rows_of_a_day_that_lacks_hours_are_taken_in_at_night(defs: dg.Definitions, lake: LakeResource) -> None:
    read = enriched(lake.lake, ["2026-01-02T10", "2026-01-05T10"], read=0)
    for dataset in ("gold.visits_cube_daily", "gold.page_stats"):
        publish(lake.lake, dataset, "event_date", {"2026-01-02": 1, "2026-01-05": 1}, inputs={HOURLY: read})
    enriched(lake.lake, ["2026-01-02T10", "2026-01-06T01"], read=0)
    # The day that runs now is not asked for.
    assert asked(daily_at_two, defs, lake, 2026, 1, 6, 2) == ["2026-01-05", "2026-01-02"]


def test_at_half_past_two_referrals_take_the_late_rows_of_two_weeks_with_them(
    defs: dg.Definitions, lake: LakeResource
) -> None:
    # The first day of the window is among them, though rows of the running day are there already.
    new, late, final = "2026-01-20", "2026-01-06", "2026-01-05"
    day_of = {day: f"{day}T10" for day in (new, late, final, "2026-01-08")}
    read = enriched(lake.lake, list(day_of.values()), read=0)
    publish(lake.lake, "gold.referral_stats", "event_date", dict.fromkeys(day_of, 1), inputs={HOURLY: read})
    enriched(lake.lake, [day_of[late], day_of[final], "2026-01-21T01"], read=0)
    assert asked(referrals_at_half_past_two, defs, lake, 2026, 1, 21, 2, 30) == [new, late]


def test_on_monday_the_page_views_of_weeks_that_late_rows_still_change_run_too(
    defs: dg.Definitions, lake: LakeResource
) -> None:
    new, late, final = "2026-04-06", "2026-01-05", "2025-12-29"
    read = enriched(lake.lake, [f"{week}T10" for week in (new, late, final)], read=0)
    publish(lake.lake, "gold.visits_weekly", "event_week", dict.fromkeys((new, late, final), 1), inputs={HOURLY: read})
    enriched(lake.lake, [f"{late}T10", f"{final}T10", "2026-04-13T01"], read=0)
    assert asked(visits_weekly_on_monday, defs, lake, 2026, 4, 13, 3, 30) == [new, late]


def test_ticks_that_are_made_up_for_after_an_outage_run_each_late_day_once(
    defs: dg.Definitions, lake: LakeResource
) -> None:
    late, missed = "2026-01-08", ["2026-01-16", "2026-01-17", "2026-01-18", "2026-01-19", "2026-01-20"]
    read = enriched(lake.lake, [f"{late}T10"], read=0)
    for dataset in ("gold.referral_stats", "gold.visits_cube_daily", "gold.page_stats"):
        publish(lake.lake, dataset, "event_date", {late: 1}, inputs={HOURLY: read})
    enriched(lake.lake, [f"{day}T10" for day in (late, *missed)], read=0)
    back = datetime(2026, 1, 21, 9, tzinfo=timezone.utc)
    for schedule, minute in ((referrals_at_half_past_two, 30), (daily_at_two, 0)):
        runs = [
            day for tick in range(17, 22) for day in asked(schedule, defs, lake, 2026, 1, tick, 2, minute, now=back)
        ]
        assert sorted(runs) == [late, *missed]
        assert runs[0] == missed[-1], "what people wait for comes first"


def test_what_the_schedule_takes_as_final_is_final_for_the_command_line(
    defs: dg.Definitions, lake: LakeResource, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, before, running = "2026-01-06", "2026-01-05", "2026-01-21"
    read = enriched(lake.lake, [f"{first}T10", f"{before}T10"], read=0)
    publish(lake.lake, "gold.referral_stats", "event_date", {first: 1, before: 1}, inputs={HOURLY: read})
    enriched(lake.lake, [f"{first}T10", f"{before}T10", f"{running}T01"], read=0)
    assert asked(referrals_at_half_past_two, defs, lake, 2026, 1, 21, 2, 30) == ["2026-01-20", first]
    monkeypatch.setattr("orchestration.finality._now", lambda: datetime(2026, 1, 21, 2, 30, tzinfo=timezone.utc))
    assert STALENESS["gold.referral_stats"](lake.landing_path, lake.events) == [first, running]
    monkeypatch.setattr("orchestration.finality._now", lambda: datetime(2026, 1, 22, 2, 30, tzinfo=timezone.utc))
    assert STALENESS["gold.referral_stats"](lake.landing_path, lake.events) == [running]


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
