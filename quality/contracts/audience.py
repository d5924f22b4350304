"""Sketches of the visitors of an hour, from which those of any longer time follow."""

from dataclasses import replace

from blogdata.planning.reach import SAME
from blogdata.publish.contract import Contract, Read
from blogdata.publish.partitions import Grain
from blogdata.publish.schema import Classification, Column, Partitioning, RowRule, Telling
from blogdata.publish.watch import Lag, Sla, Watch
from quality.contracts import campaigns, page_views
from quality.contracts import columns as c
from quality.contracts.places import PLACE

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
    reads=(Read(dataset="silver.visits_enriched", reach=SAME),),
    columns=(
        c.EVENT_HOUR,
        c.text(name="dimension", description=f"What the page views are grouped by: {', '.join(AUDIENCE_DIMENSIONS)}"),
        c.text(name="value", description="Its value, or unknown"),
        c.count(name="events", description="Page views", sourceless="counts rows"),
        VISITORS,
    ),
    key=("event_hour", "dimension", "value"),
    partitioning=Partitioning(column="event_hour", grain=Grain.HOUR),
    rules=(
        RowRule(name="has_events", expression="events >= 1", description="A group has events"),
        RowRule(
            name="has_visitors",
            expression="hll_sketch_estimate(visitors) >= 1",
            description="The sketch can be read, and has visitors",
        ),
    ),
    rows_in="rows of `silver.visits_enriched` of the hour, once for each dimension",
    stands_for=page_views.STANDS_FOR,
    reasons=page_views.AGGREGATED,
    left_out=page_views.MORE_OF_AGGREGATED,
    statistics=("dimension", "value"),
    tells=(Telling(rows="`dimension` = 'country'", column=PLACE[0]),),
    feeds=("gold.returning_visitors",),
    patterns=("Local Aggregator", "Data Overwrite", "Audit-Write-Audit-Publish"),
    freshness_hours=3,
    watch=Watch(lag=Lag(), sla=Sla()),
)

CAMPAIGN_COLUMNS = ("campaign", "displays_alone", "events", "events_alone", "pairs")
"""Columns that gold.campaign_stats has, too."""

CAMPAIGN_AUDIENCE_HOURLY = Contract(
    dataset="gold.campaign_audience_hourly",
    description="Page views that belong to displays of a campaign, by hour, and mergeable sketches of their visitors",
    owner="team:analytics",
    consumers=("team:marketing",),
    reads=(Read(dataset="silver.visits_with_ads", reach=SAME),),
    columns=(
        c.EVENT_HOUR,
        *[column for column in campaigns.CAMPAIGN_STATS.columns if column.name in CAMPAIGN_COLUMNS],
        replace(
            VISITORS,
            nullable=True,
            description=f"{VISITORS.description}; an empty sketch if no page view belongs to a display",
        ),
    ),
    key=("event_hour", "campaign"),
    partitioning=Partitioning(column="event_hour", grain=Grain.HOUR),
    rules=(
        RowRule(
            name="counts_are_plausible",
            expression="events BETWEEN 0 AND pairs AND events_alone >= 0 AND displays_alone >= 0",
            description="No part is larger than what it is a part of",
        ),
        RowRule(
            name="visitors_of_events",
            expression="(events > 0) = (coalesce(hll_sketch_estimate(visitors), 0) >= 1)",
            description="The sketch can be read, and there are visitors where there are page views",
        ),
    ),
    rows_in="rows of `silver.visits_with_ads` of the hour",
    stands_for=campaigns.CAMPAIGN_STATS.stands_for,
    reasons=campaigns.CAMPAIGN_STATS.reasons,
    left_out=campaigns.CAMPAIGN_STATS.left_out,
    statistics=("campaign",),
    patterns=("Local Aggregator", "Data Overwrite", "Audit-Write-Audit-Publish"),
    freshness_hours=3,
    watch=Watch(lag=Lag(), sla=Sla()),
)
