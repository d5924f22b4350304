"""Campaigns: their displays, and the page views and visitors that belong to them."""

from blogdata.planning.reach import WITHIN
from blogdata.publish.contract import Read
from blogdata.publish.schedule import Clock, On, Runs
from blogdata.publish.schema import RowRule
from quality.contracts import columns as c
from quality.contracts.page_views import HOURS_OF_A_DAY, HOURS_PRESENT, PARTS, PATTERNS, daily

_JOINED = Read(dataset="silver.visits_with_ads", reach=WITHIN)
CAMPAIGN_STATS = daily(
    dataset="gold.campaign_stats",
    description="Displays of a campaign on a day, and the page views and visitors within half an hour after them",
    consumers=("team:marketing",),
    reads=(_JOINED, Read(dataset="silver.ads", reach=WITHIN)),
    runs=Runs(on=On.ALL_THERE, at=Clock.NIGHTLY),
    columns=(
        c.EVENT_DATE,
        c.text(
            name="campaign",
            description="The campaign, or unknown: of page views that name an ad and belong to no display, too",
        ),
        c.count(name="displays", description="Displays of its ads", sourceless="counts rows"),
        c.count(name="displays_alone", description="Of these, displays to which no page view belongs"),
        c.count(
            name="events", description="Page views that belong to a display; one that belongs to several counts once"
        ),
        c.count(
            name="events_alone",
            description="Page views that name an ad and belong to no display, so their campaign is unknown",
        ),
        c.count(name="pairs", description="Page views by each display they belong to"),
        c.count(name="visits", description="Distinct browsing sessions of the events"),
        c.count(name="visitors", description="Distinct visitors of the events"),
        HOURS_PRESENT,
    ),
    key=("event_date", "campaign"),
    rules=(
        RowRule(
            name="counts_are_plausible",
            expression="displays_alone BETWEEN 0 AND displays AND events BETWEEN 0 AND pairs AND events_alone >= 0"
            " AND visits BETWEEN 0 AND events AND visitors BETWEEN 0 AND events",
            description="No part is larger than what it is a part of",
        ),
        RowRule(
            name="no_campaign_without_a_display",
            expression=f"events_alone = 0 OR campaign = '{c.UNKNOWN}'",
            description="Only its display tells the campaign of a page view",
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
