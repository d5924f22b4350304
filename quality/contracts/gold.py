"""Gold: what people read, by day and week of the events."""

from patterns.core.contract import Audit, Column, Contract, Partitioning, Rule
from patterns.core.partitions import Grain
from quality.contracts import columns as c

DAY = Partitioning(column="event_date", grain=Grain.DAY)
WEEK = Partitioning(column="event_week", grain=Grain.WEEK)

COUNTS = (
    Column(name="events", type="BIGINT", nullable=False, description="Page views"),
    Column(name="visits", type="BIGINT", nullable=False, description="Distinct browsing sessions"),
    Column(name="users", type="BIGINT", nullable=False, description="Distinct visitors"),
)
COUNTED = Rule(
    name="counts_are_plausible",
    expression="events >= 1 AND visits BETWEEN 1 AND events AND users BETWEEN 1 AND events",
    description="A group has events, and and neither more visits nor more users than events",
)
STANDS_FOR = "sum(events)"
AGGREGATED = {"aggregated": "sum(events) - count(1)"}
CUBE_DIMENSIONS = (
    Column(name="device_type", type="STRING", nullable=False, description="Device type, or unknown"),
    Column(name="browser", type="STRING", nullable=False, description="Browser family, or unknown"),
    Column(
        name="referral_host",
        type="STRING",
        nullable=False,
        description="Host the visitors came from, or direct",
    ),
)
HOURS_PRESENT = Column(
    name="hours_present",
    type="INT",
    nullable=False,
    description="Hours of the period that were there when it was computed",
)
PARTS = {"parts": "max(hours_present)"}
PATTERNS = ("Distributed Aggregator", "Aligned Fan-In", "Data Overwrite", "Audit-Write-Audit-Publish")

VISITS_CUBE_DAILY = Contract(
    dataset="gold.visits_cube_daily",
    description="Page views, visits and visitors of a day by device, browser and origin",
    owner="team:analytics",
    columns=(c.EVENT_DATE, *CUBE_DIMENSIONS, *COUNTS, HOURS_PRESENT),
    key=("event_date", "device_type", "browser", "referral_host"),
    partitioning=DAY,
    rules=(
        COUNTED,
        Rule(
            name="hours_of_a_day",
            expression="hours_present BETWEEN 1 AND 24",
            description="A day has 24 hours",
        ),
    ),
    stands_for=STANDS_FOR,
    reasons=AGGREGATED,
    measures=PARTS,
    parts=24,
    statistics=("device_type", "browser"),
    patterns=PATTERNS,
    freshness_hours=6,
)

VISITS_CUBE_WEEKLY = Contract(
    dataset="gold.visits_cube_weekly",
    description="Page views, visits and visitors of a week by device, browser and origin",
    owner="team:analytics",
    columns=(c.EVENT_WEEK, *CUBE_DIMENSIONS, *COUNTS, HOURS_PRESENT),
    key=("event_week", "device_type", "browser", "referral_host"),
    partitioning=WEEK,
    rules=(
        COUNTED,
        Rule(
            name="hours_of_a_week",
            expression="hours_present BETWEEN 1 AND 168",
            description="A week has 168 hours",
        ),
    ),
    stands_for=STANDS_FOR,
    reasons=AGGREGATED,
    measures=PARTS,
    parts=168,
    statistics=("device_type", "browser"),
    patterns=PATTERNS,
    freshness_hours=12,
)

PAGE_STATS = Contract(
    dataset="gold.page_stats",
    description="Page views, visits and visitors of a page on a day",
    owner="team:analytics",
    columns=(
        c.EVENT_DATE,
        Column(name="page", type="STRING", nullable=False, description="Path of the page"),
        *COUNTS,
        Column(name="share", type="DOUBLE", nullable=False, description="Share of the day's page views, 0 to 1"),
    ),
    key=("event_date", "page"),
    partitioning=DAY,
    rules=(
        COUNTED,
        Rule(
            name="share_is_a_share",
            expression="share > 0 AND share <= 1",
            description="A share lies in (0, 1]",
        ),
    ),
    audits=(
        Audit(
            name="shares_sum_to_one",
            expression="abs(sum(share) - 1) < 0.000001",
            description="The shares of a day add up",
        ),
    ),
    stands_for=STANDS_FOR,
    reasons=AGGREGATED,
    statistics=("page",),
    patterns=PATTERNS,
    freshness_hours=6,
)

REFERRAL_STATS = Contract(
    dataset="gold.referral_stats",
    description="Page views, visits and visitors by the host they came from, per day; final after two weeks",
    owner="team:analytics",
    columns=(c.EVENT_DATE, CUBE_DIMENSIONS[2], *COUNTS),
    key=("event_date", "referral_host"),
    partitioning=DAY,
    rules=(COUNTED,),
    stands_for=STANDS_FOR,
    reasons=AGGREGATED,
    statistics=("referral_host",),
    lookback=14,
    patterns=(*PATTERNS, "Static Late Data Integrator"),
    freshness_hours=6,
)

CONTRACTS = (VISITS_CUBE_DAILY, VISITS_CUBE_WEEKLY, PAGE_STATS, REFERRAL_STATS)
