"""Campaigns, and sketches of the visitors of an hour, from which those of any longer time follow."""

from blogdata.contract.contract import Contract, Read
from blogdata.contract.partitions import Grain
from blogdata.contract.schedule import Clock, On, Runs
from blogdata.contract.schema import Classification, Column, Partitioning, RowRule, Telling
from blogdata.contract.watch import Lag, Sla, Watch
from blogdata.planning.reach import WITHIN, Same
from quality.contracts import columns as c
from quality.contracts import page_views
from quality.contracts.enriched import COUNTRY
from quality.contracts.page_views import HOURS_OF_A_DAY, HOURS_PRESENT, PARTS, PATTERNS, daily

_JOINED = Read("silver.visits_with_ads", WITHIN)
CAMPAIGN_STATS = daily(
    dataset="gold.campaign_stats",
    description="Displays of a campaign on a day, and the page views and visitors within half an hour after them",
    consumers=("team:marketing",),
    reads=(_JOINED, Read("silver.ads", WITHIN)),
    runs=Runs(on=On.ALL_THERE, at=Clock.NIGHTLY),
    columns=(
        c.EVENT_DATE,
        c.text("campaign", "The campaign, or unknown: of page views that name an ad and belong to no display, too"),
        c.count("displays", "Displays of its ads", sourceless="counts rows"),
        c.count("displays_alone", "Of these, displays to which no page view belongs"),
        c.count("events", "Page views that belong to a display; one that belongs to several counts once"),
        c.count("events_alone", "Page views that name an ad and belong to no display, so their campaign is unknown"),
        c.count("pairs", "Page views by each display they belong to"),
        c.count("visits", "Distinct browsing sessions of the events"),
        c.count("visitors", "Distinct visitors of the events"),
        HOURS_PRESENT,
    ),
    key=("event_date", "campaign"),
    rules=(
        RowRule(
            "counts_are_plausible",
            "displays_alone BETWEEN 0 AND displays AND events BETWEEN 0 AND pairs AND events_alone >= 0"
            " AND visits BETWEEN 0 AND events AND visitors BETWEEN 0 AND events",
            "No part is larger than what it is a part of",
        ),
        RowRule(
            "no_campaign_without_a_display",
            f"events_alone = 0 OR campaign = '{c.UNKNOWN}'",
            "Only its display tells the campaign of a page view",
        ),
        HOURS_OF_A_DAY,
    ),
    rows_in="rows of `silver.visits_with_ads` of the hours of the day; displays are held against `silver.ads`",
    stands_for="sum(pairs + displays_alone + events_alone)",
    reasons={"aggregated": "sum(pairs + displays_alone + events_alone) - count(1)"},
    left_out={"aggregated": "the rows joined, less the number of campaigns"},
    measures={**PARTS, "displays": "sum(displays)"},
    statistics=("campaign",),
    patterns=PATTERNS,
)

ALL = "all"
"""The dimension with one group, of every page view."""
AUDIENCE_DIMENSIONS = (ALL, "page", "referral_host", "device_type", "country")
LG_K = 12
"""Size of a sketch as a power of two; of 12, one standard error is 1.6 %, and a sketch has at most 4,136 bytes."""

VISITORS = Column(
    name="visitors",
    type="BINARY",
    subject=c.VISITOR_PSEUDONYM,
    nullable=False,
    # Who knows a user's id can try whether a sketch of few visitors has it.
    classification=Classification.PERSONAL,
    description=f"HLL sketch (Apache DataSketches, lgConfigK {LG_K}) of the `user_id` of the visitors",
)

AUDIENCE_HOURLY = Contract(
    dataset="gold.audience_hourly",
    description="Page views of an hour, and sketches of its visitors that can be merged, by one dimension at a time",
    owner="team:analytics",
    consumers=("team:editors",),
    reads=(Read("silver.visits_enriched", Same(delivered=page_views.DELIVERED)),),
    columns=(
        c.EVENT_HOUR,
        c.text("dimension", f"What the page views are grouped by: {', '.join(AUDIENCE_DIMENSIONS)}"),
        c.text("value", "Its value, or unknown"),
        c.count("events", "Page views", sourceless="counts rows"),
        VISITORS,
    ),
    key=("event_hour", "dimension", "value"),
    partitioning=Partitioning(column="event_hour", grain=Grain.HOUR),
    rules=(
        RowRule("has_events", "events >= 1", "A group has events"),
        RowRule("has_visitors", "hll_sketch_estimate(visitors) >= 1", "The sketch can be read, and has visitors"),
    ),
    rows_in="rows of `silver.visits_enriched` of the hour, once for each dimension",
    stands_for=page_views.STANDS_FOR,
    reasons=page_views.AGGREGATED,
    left_out=page_views.MORE_OF_AGGREGATED,
    statistics=("dimension", "value"),
    tells=(Telling(rows="`dimension` = 'country'", column=COUNTRY),),
    adds_up=("event_hour", "dimension"),
    feeds=("gold.returning_visitors",),
    patterns=("Local Aggregator", "Data Overwrite", "Audit-Write-Audit-Publish"),
    freshness_hours=3,
    watch=Watch(lag=Lag(), sla=Sla()),
)
