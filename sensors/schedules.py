"""The clock: a day and a week are computed after their end, whether or not anything else asked for it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone

import dagster as dg

from assets.staleness import stale_periods
from orchestration.finality import lookback_of
from patterns.core.partitions import Grain, between, key_of
from patterns.error_management import static_late_data_integrator
from quality.contracts import CONTRACTS
from resources.lake import LakeResource
from sensors import jobs

# Not `build_schedule_from_partitioned_job`: it runs the newest partition, and here that is the one still running.


@dg.schedule(
    cron_schedule="0 2 * * *",
    job=jobs.daily,
    description="The gold datasets of yesterday, and of the days before it that late rows have touched",
)
def daily_at_two(context: dg.ScheduleEvaluationContext, lake: LakeResource) -> list[dg.RunRequest] | dg.SkipReason:
    """Ask for the day that has ended, and after it for those that are behind."""
    return _with_behind(context, lake, Grain.DAY, *jobs.DAILY)


@dg.schedule(
    cron_schedule="0 3 * * 1",
    job=jobs.weekly,
    description="The gold datasets of last week, and of the weeks before it that late rows have touched",
)
def weekly_on_monday(context: dg.ScheduleEvaluationContext, lake: LakeResource) -> list[dg.RunRequest] | dg.SkipReason:
    """Ask for the week that has ended, and after it for those that are behind."""
    return _with_behind(context, lake, Grain.WEEK, *jobs.WEEKLY)


@dg.schedule(
    cron_schedule="30 2 * * *",
    job=jobs.referrals,
    description="The referral statistics of yesterday, and of the days before it that late rows still change",
    tags={"pattern/static-late-data-integrator": ""},
)
def referrals_at_half_past_two(
    context: dg.ScheduleEvaluationContext, lake: LakeResource
) -> list[dg.RunRequest] | dg.SkipReason:
    """Ask for the day that has ended, and after it for what its lookback finds."""
    return _with_lookback(context, lake, "gold.referral_stats", Grain.DAY)


@dg.schedule(
    cron_schedule="30 3 * * 1",
    job=jobs.visits_weekly,
    description="The page views of last week, and of the weeks before it that late rows still change",
    tags={"pattern/static-late-data-integrator": "", "pattern/fast-metadata-cleaner": ""},
)
def visits_weekly_on_monday(
    context: dg.ScheduleEvaluationContext, lake: LakeResource
) -> list[dg.RunRequest] | dg.SkipReason:
    """Ask for the week that has ended, and after it for what its lookback finds."""
    return _with_lookback(context, lake, "gold.visits_weekly", Grain.WEEK)


def _with_behind(
    context: dg.ScheduleEvaluationContext, lake: LakeResource, grain: Grain, *datasets: str
) -> list[dg.RunRequest] | dg.SkipReason:
    current, newest = _executions(context, grain)
    if current != newest:
        return dg.SkipReason(f"the tick of {newest} asks for all that is behind")
    # Conditions ask for a period when all of its hours are there; when one never comes, nobody else asks.
    behind = {key for dataset in datasets for key in stale_periods(lake.events, dataset, grain) if key < current}
    return _requests(current, [current, *sorted(behind)])


def _with_lookback(
    context: dg.ScheduleEvaluationContext, lake: LakeResource, dataset: str, grain: Grain
) -> list[dg.RunRequest] | dg.SkipReason:
    lookback = lookback_of(CONTRACTS[dataset])
    assert lookback is not None
    current, newest = _executions(context, grain)
    if current not in static_late_data_integrator.collapse(between(current, newest, grain), lookback):
        return dg.SkipReason(f"{current} lies in the window of a later tick that is due")
    touched = stale_periods(lake.events, dataset, grain)
    return _requests(current, static_late_data_integrator.due(current, touched, lookback))


def _executions(context: dg.ScheduleEvaluationContext, grain: Grain) -> tuple[str, str]:
    """Give the period a tick asks for, and that of the newest tick: after an outage Dagster makes up for several."""
    due = context.scheduled_execution_time
    overtaken_by = max(0, (_now() - due) // grain.length)
    return key_of(due - grain.length, grain), key_of(due + (overtaken_by - 1) * grain.length, grain)


def _requests(current: str, keys: Sequence[str]) -> list[dg.RunRequest]:
    # One execution a period, whatever it finds: a tick that is repeated asks for the same runs.
    return [dg.RunRequest(run_key=f"{current}/{key}", partition_key=key) for key in keys]


def _now() -> datetime:
    return datetime.now(timezone.utc)


data_docs_at_four = dg.ScheduleDefinition(
    name="data_docs_at_four",
    job=jobs.data_docs,
    cron_schedule="0 4 * * *",
    description="The Data Docs of the day",
)
lineage_at_half_past_four = dg.ScheduleDefinition(
    name="lineage_at_half_past_four",
    job=jobs.lineage,
    cron_schedule="30 4 * * *",
    description="The lineage of what was published, for a catalog",
)
freeze_on_the_first = dg.ScheduleDefinition(
    name="freeze_on_the_first",
    job=jobs.freeze,
    cron_schedule="0 5 1 * *",
    description="Freeze the past years whose weeks have become final",
)
retention_at_five = dg.ScheduleDefinition(
    name="retention_at_five",
    job=jobs.retention,
    cron_schedule="0 5 * * *",
    description="Remove copies and replaced tables whose time is over",
)
SCHEDULES = (
    daily_at_two,
    referrals_at_half_past_two,
    weekly_on_monday,
    visits_weekly_on_monday,
    data_docs_at_four,
    lineage_at_half_past_four,
    freeze_on_the_first,
    retention_at_five,
)
