"""gold.sessions_daily: the completed sessions of a day.

gold.page_stats and gold.referral_stats: daily counts by page and by referring host.

gold.visits_cube_daily and _weekly: page views, visits and visitors by device, browser, origin and country.

gold.campaign_stats: displays of campaigns by day, and the page views that belong to them.
"""

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import functions as F

from assets.gold.fan_in import DELIVERED_ADS, DELIVERED_VISITS, gather
from assets.transforms import campaign_counts, cubes
from assets.transforms import session_rules as rules
from blogdata.lake.commit import Account, Commit
from blogdata.orchestration import accounts
from blogdata.orchestration.computation import computes
from blogdata.orchestration.step import Step, Upstream
from blogdata.publish.partitions import Grain, finer

JOINED, DISPLAYS = "silver.visits_with_ads", "silver.ads"


@computes("gold.campaign_stats")
def campaign_stats(step: Step) -> Mapping[str, Commit]:
    """Count each campaign's displays of a day, and the page views, visits and visitors of the day they brought."""
    period = gather(step, JOINED, (DELIVERED_VISITS, DELIVERED_ADS))
    day = F.substring("display_hour", 1, 10)
    displays = step.read(DISPLAYS).withColumn("event_date", day).where(day.isin(*step.partitions))
    shown = accounts.gathered(step, DISPLAYS, lambda key: finer(key, Grain.DAY, Grain.HOUR))
    return step.publish(
        period.with_hours(campaign_counts.campaign_stats(period.visits, displays)),
        Upstream(
            accounts=period.accounts,
            expected={key: {"displays": account.rows_in} for key, account in shown.items()},
        ),
    )


@computes("gold.visits_cube_daily")
def visits_cube_daily(step: Step) -> Mapping[str, Commit]:
    """Aggregate a day from its 24 hours."""
    period = gather(step)
    return step.publish(
        period.with_hours(cubes.visits_cube(period.visits, "event_date")), Upstream(accounts=period.accounts)
    )


@computes("gold.visits_cube_weekly")
def visits_cube_weekly(step: Step) -> Mapping[str, Commit]:
    """Aggregate a week from its hours: distinct visitors of days do not add up to those of the week."""
    period = gather(step)
    return step.publish(
        period.with_hours(cubes.visits_cube(period.visits, "event_week")), Upstream(accounts=period.accounts)
    )


@computes("gold.page_stats")
def page_stats(step: Step) -> Mapping[str, Commit]:
    """Count each page's views, visits and visitors."""
    period = gather(step)
    return step.publish(period.with_hours(cubes.page_stats(period.visits)), Upstream(accounts=period.accounts))


@computes("gold.referral_stats")
def referral_stats(step: Step) -> Mapping[str, Commit]:
    """Count the views, visits and visitors each referring host brought."""
    period = gather(step)
    return step.publish(period.with_hours(cubes.referral_stats(period.visits)), Upstream(accounts=period.accounts))


SESSIONS = "silver.sessions"


@computes("gold.sessions_daily")
def sessions_daily(step: Step) -> Mapping[str, Commit]:
    """Gather the sessions that were completed in the hours of the day."""
    period = gather(step, SESSIONS)
    completed = replace(period, visits=period.visits.where("is_completed"))
    found = accounts.entries(step, SESSIONS, [hour for day in step.partitions for hour in _hours(day)])
    counted = {
        day: Account(rows_in=sum(int(found[hour].measures["completed"]) for hour in _hours(day) if hour in found))
        for day in step.partitions
    }
    # Nothing is aggregated, so no shuffle brings a day together: each task would write a file of every day it reads.
    whole_days = completed.visits.repartition(period.column)
    return step.publish(completed.with_hours(rules.daily(whole_days)), Upstream(accounts=counted))


def _hours(day: str) -> tuple[str, ...]:
    return finer(day, Grain.DAY, Grain.HOUR)
