"""The clock: a day and a week are computed after their end, whether or not anything else asked for it."""

from __future__ import annotations

import dagster as dg

from patterns.core.partitions import Grain, key_of
from sensors import jobs

# Not `build_schedule_from_partitioned_job`: it runs the newest partition, and here that is the one still running.


@dg.schedule(cron_schedule="0 2 * * *", job=jobs.daily, description="The gold datasets of yesterday")
def daily_at_two(context: dg.ScheduleEvaluationContext) -> dg.RunRequest:
    """Ask for the day that has ended."""
    return _last(context, Grain.DAY)


@dg.schedule(cron_schedule="0 3 * * 1", job=jobs.weekly, description="The gold datasets of last week")
def weekly_on_monday(context: dg.ScheduleEvaluationContext) -> dg.RunRequest:
    """Ask for the week that has ended."""
    return _last(context, Grain.WEEK)


def _last(context: dg.ScheduleEvaluationContext, grain: Grain) -> dg.RunRequest:
    key = key_of(context.scheduled_execution_time - grain.length, grain)
    return dg.RunRequest(run_key=key, partition_key=key)


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
SCHEDULES = (daily_at_two, weekly_on_monday, data_docs_at_four, lineage_at_half_past_four)
