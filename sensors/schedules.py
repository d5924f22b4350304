"""The clock: a day and a week are computed after their end, whether or not anything else asked for it."""

from __future__ import annotations

import dagster as dg

from sensors import jobs

daily_at_two = dg.build_schedule_from_partitioned_job(
    jobs.daily, name="daily_at_two", hour_of_day=2, description="The gold datasets of yesterday"
)
weekly_on_monday = dg.build_schedule_from_partitioned_job(
    jobs.weekly,
    name="weekly_on_monday",
    hour_of_day=3,
    day_of_week=1,
    description="The gold datasets of last week",
)
data_docs_at_four = dg.ScheduleDefinition(
    name="data_docs_at_four",
    job=jobs.data_docs,
    cron_schedule="0 4 * * *",
    description="The Data Docs of the day",
)
SCHEDULES = (daily_at_two, weekly_on_monday, data_docs_at_four)
