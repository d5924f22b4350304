"""gold.sessions_daily: the completed sessions of a day."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from assets.gold.page_views import gather
from blogdata.contract.partitions import Grain, finer
from blogdata.contract.publication import Account, Commit
from blogdata.runs import accounts
from blogdata.runs.computation import computes
from blogdata.runs.step import Step, Upstream

SESSIONS = "silver.sessions"


@computes("gold.sessions_daily")
def sessions_daily(step: Step) -> Mapping[str, Commit]:
    """Gather the sessions that were completed in the hours of the day."""
    period = gather(step, SESSIONS)
    completed = replace(period, visits=period.visits.where("is_completed"))
    hours = {day: finer(day, Grain.DAY, Grain.HOUR) for day in step.partitions}
    entries = accounts.entries(step, SESSIONS, [hour for keys in hours.values() for hour in keys])
    counted = {
        day: Account(rows_in=sum(int(entries[hour].measures["completed"]) for hour in keys if hour in entries))
        for day, keys in hours.items()
    }
    # Nothing is aggregated, so no shuffle brings a day together: each task would write a file of every day it reads.
    whole_days = completed.visits.repartition(period.column)
    return step.publish(completed.with_hours(columns(whole_days)), Upstream(accounts=counted))


def columns(sessions: DataFrame) -> DataFrame:
    """Compute the columns of gold.sessions_daily from completed sessions."""
    micros = F.unix_micros("ended_at") - F.unix_micros("started_at")
    return sessions.select(
        *("event_date", "session_id", "started_at", "ended_at", "pages", "entry_page", "exit_page"),
        # Behind the path of an address, and before its host, may be anything about a person.
        F.regexp_replace(F.regexp_replace("referral", r"(?s)[?#].*", ""), "//[^/@]*@", "//").alias("referral"),
        (micros / 1_000_000).alias("seconds"),
        (F.col("pages") == 1).alias("bounced"),
        F.array_join("first_pages", " > ").alias("path"),
        "keep_private",
    )
