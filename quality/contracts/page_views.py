"""Page views for analysts, by day and week: their counts by several dimensions, and one a row."""

from dataclasses import replace
from datetime import date, timedelta
from functools import partial

from blogdata.contract.contract import Contract, Read
from blogdata.contract.migrations import migrating
from blogdata.contract.partitions import Grain
from blogdata.contract.schedule import Clock, On, Runs
from blogdata.contract.schema import Audit, Column, Migration, Partitioning, RowRule
from blogdata.contract.watch import Flow, Lag, Skew, Sla, Watch
from blogdata.planning.reach import Within
from quality.contracts import columns as c
from quality.contracts import enriched

DAY = Partitioning(column="event_date", grain=Grain.DAY)
WEEK = Partitioning(column="event_week", grain=Grain.WEEK)

DELIVERED = "bronze.visits"
"""By the days of its arrivals, late rows change figures."""
HOURS = (Read("silver.visits_enriched", Within(delivered=DELIVERED)),)
COUNTS = (
    c.count("events", "Page views", sourceless="counts rows"),
    c.count("visits", "Distinct browsing sessions"),
    c.count("users", "Distinct visitors"),
)
COUNTED = RowRule(
    "counts_are_plausible",
    "events >= 1 AND visits BETWEEN 1 AND events AND users BETWEEN 1 AND events",
    "A group has events, and neither more visits nor more users than events",
)
ROWS_IN = "rows of `silver.visits_enriched` of the hours of the period"
STANDS_FOR = "sum(events)"
AGGREGATED = {"aggregated": "sum(events) - count(1)"}
MORE_OF_AGGREGATED = {"aggregated": "the sum of `events` less the number of groups"}
CUBE_DIMENSIONS = (
    c.text("device_type", "Device type, or unknown"),
    c.text("browser", "Browser family, or unknown"),
    c.text("referral_host", "Host the visitors came from, or direct"),
)
# Hidden from the roles that do not see that of a visit. Were groups of few visitors left out instead (`tells`), such a
# role would sum 1,032 of the 3,983 page views of the tutorial.
COUNTRY = replace(enriched.COUNTRY, nullable=False, description="Country code (ISO 3166-1 alpha-2), or unknown")
HOURS_PRESENT = Column(
    "hours_present",
    "Hours of the period that were delivered when it was computed, with rows or without",
    type="INT",
    nullable=False,
)
HOURS_OF_A_DAY = RowRule("hours_of_a_day", "hours_present BETWEEN 0 AND 24", "A day has 24 hours")
HOURS_OF_A_WEEK = RowRule("hours_of_a_week", "hours_present BETWEEN 0 AND 168", "A week has 168 hours")
IN_ITS_WEEK = RowRule(
    "in_its_week",
    "event_week = cast(cast(date_trunc('week', cast(event_date AS DATE)) AS DATE) AS STRING)",
    "A day lies in its week",
)
PARTS = {"parts": "max(hours_present)"}
WATCHED = Watch(skew=Skew(), lag=Lag(), sla=Sla())
PATTERNS = ("Distributed Aggregator", "Aligned Fan-In", "Data Overwrite", "Audit-Write-Audit-Publish")

daily = partial(
    Contract, owner="team:analytics", partitioning=DAY, measures=PARTS, parts=24, freshness_hours=6, watch=WATCHED
)
"""The contract of a dataset whose days are gathered from hours."""
CUBE_KEY = tuple(column.name for column in (*CUBE_DIMENSIONS, COUNTRY))

counted_daily = partial(
    daily,
    reads=HOURS,
    runs=Runs(on=On.ALL_THERE, at=Clock.NIGHTLY),
    rows_in=ROWS_IN,
    stands_for=STANDS_FOR,
    reasons=AGGREGATED,
    left_out=MORE_OF_AGGREGATED,
    patterns=PATTERNS,
)
"""The contract of page views of a day, counted."""

VISITS_CUBE_DAILY = counted_daily(
    dataset="gold.visits_cube_daily",
    description="Page views, visits and visitors of a day by device, browser, origin and country",
    columns=(c.EVENT_DATE, *CUBE_DIMENSIONS, COUNTRY, *COUNTS, HOURS_PRESENT),
    key=("event_date", *CUBE_KEY),
    rules=(COUNTED, HOURS_OF_A_DAY),
    statistics=("device_type", "browser"),
)

VISITS_CUBE_WEEKLY = counted_daily(
    dataset="gold.visits_cube_weekly",
    description="Page views, visits and visitors of a week by device, browser, origin and country",
    runs=Runs(on=On.ALL_THERE, at=Clock.WEEKLY),
    columns=(c.EVENT_WEEK, *CUBE_DIMENSIONS, COUNTRY, *COUNTS, HOURS_PRESENT),
    key=("event_week", *CUBE_KEY),
    partitioning=WEEK,
    rules=(COUNTED, HOURS_OF_A_WEEK),
    statistics=("device_type", "browser"),
    parts=168,
    freshness_hours=12,
)

PAGE_STATS = counted_daily(
    dataset="gold.page_stats",
    description="Page views, visits and visitors of a page on a day",
    consumers=("team:editors",),
    columns=(
        c.EVENT_DATE,
        c.text("page", "Path of the page"),
        *COUNTS,
        c.measure("share", "Share of the day's page views, 0 to 1"),
        HOURS_PRESENT,
    ),
    key=("event_date", "page"),
    rules=(COUNTED, RowRule("share_is_a_share", "share > 0 AND share <= 1", "A share lies in (0, 1]"), HOURS_OF_A_DAY),
    audits=(Audit("shares_sum_to_one", "abs(sum(share) - 1) < 0.000001", "The shares of a day add up"),),
    statistics=("page",),
    # Editors compare days: one with half of its visits is looked at before they see it.
    watch=replace(WATCHED, flow=Flow(), skew=Skew(tolerance=0.4)),
)

REFERRAL_STATS = migrating(
    counted_daily(
        dataset="gold.referral_stats",
        description="Page views, visits and visitors by the host they came from, per day; final after two weeks",
        consumers=("team:marketing",),
        runs=Runs(on=On.FIRST_ALL_THERE, at=Clock.NIGHTLY, lookback=14),
        columns=(
            c.EVENT_DATE,
            CUBE_DIMENSIONS[2],
            *COUNTS,
            Column("visitors", "Distinct visitors, known as users or not", type="BIGINT"),
            HOURS_PRESENT,
        ),
        # What it counts are no rows of silver.users: most visitors have never registered.
        migrations=(Migration(old="users", new="visitors", since=date(2026, 11, 25), grace=timedelta(days=90)),),
        key=("event_date", "referral_host"),
        rules=(COUNTED, HOURS_OF_A_DAY),
        statistics=("referral_host",),
        patterns=(*PATTERNS, "Static Late Data Integrator", "Schema Migrator"),
    )
)
