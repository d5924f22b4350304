"""gold.audience_hourly: page views of an hour and a sketch of the visitors, by one dimension at a time.

Combinations of dimensions would have about as many groups as page views, each with a sketch.

gold.campaign_stats: displays, and the page views that belong to them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from assets.gold.page_views import DELIVERED_ADS, DELIVERED_VISITS, ENRICHED_VISITS, gather, named
from blogdata.contract.partitions import Grain, finer
from blogdata.contract.publication import Commit
from blogdata.patterns.data_value import distributed_aggregator, local_aggregator
from blogdata.patterns.data_value.distributed_aggregator import How, Measure
from blogdata.runs import accounts
from blogdata.runs.computation import computes
from blogdata.runs.step import Step, Upstream
from blogdata.table.lake import Stored
from quality.contracts.ads import BOTH, DISPLAY_SIDE, EVENT_SIDE
from quality.contracts.audience import ALL, AUDIENCE_DIMENSIONS, LG_K

MEASURES = (Measure(name="events"), Measure(name="visitors", how=How.SKETCH, column="user_id", lg_k=LG_K))


def dimensions() -> Column:
    """Return a generator of the columns `dimension` and `value`: a row for each dimension of a visit event."""
    values = {name: F.lit(ALL) if name == ALL else named(F.col(name)) for name in AUDIENCE_DIMENSIONS}
    rows = (F.struct(F.lit(name).alias("dimension"), value.alias("value")) for name, value in values.items())
    return F.inline(F.array(*rows))


@computes("gold.audience_hourly")
def audience_hourly(step: Step) -> Mapping[str, Commit]:
    """Aggregate each hour where its rows lie: they are in one partition."""
    visits = accounts.same_partition(step, ENRICHED_VISITS)
    stored = Stored(
        lake=step.lake, dataset=ENRICHED_VISITS, version=step.pin(ENRICHED_VISITS), partitions=step.partitions
    )
    rows = local_aggregator.aggregate(step.spark, stored, step.contract.key, MEASURES, computed=[dimensions()])
    counted = {
        hour: replace(account, rows_in=account.rows_in * len(AUDIENCE_DIMENSIONS)) for hour, account in visits.items()
    }
    return step.publish(rows, Upstream(accounts=counted))


JOINED, DISPLAYS = "silver.visits_with_ads", "silver.ads"
COUNTS = (
    Measure(name="displays", column="_display"),
    Measure(name="displays_alone", column="_display_alone"),
    Measure(name="events", how=How.DISTINCT, column="_event"),
    Measure(name="events_alone", column="_event_alone"),
    Measure(name="pairs", column="_pair"),
    Measure(name="visits", how=How.DISTINCT, column="_visit"),
    Measure(name="visitors", how=How.DISTINCT, column="_visitor"),
)


@computes("gold.campaign_stats")
def campaign_stats(step: Step) -> Mapping[str, Commit]:
    """Count each campaign's displays of a day, and the page views, visits and visitors of the day they brought."""
    period = gather(step, JOINED, (DELIVERED_VISITS, DELIVERED_ADS))
    hours = {key: finer(key, Grain.DAY, Grain.HOUR) for key in step.partitions}
    displays = step.read(DISPLAYS, [hour for day in hours.values() for hour in day])
    displays = displays.withColumn("event_date", F.substring("display_hour", 1, 10))
    displayed = accounts.gathered(step, DISPLAYS, lambda key: hours[key])
    expected = {key: {"displays": account.rows_in} for key, account in displayed.items()}
    return step.publish(
        period.with_hours(by_campaign(period.visits, displays)), Upstream(accounts=period.accounts, expected=expected)
    )


def by_campaign(joined: DataFrame, displays: DataFrame) -> DataFrame:
    """Count by campaign: `event_date` STRING is of the row's hour, and of a display its day."""
    side, counted = F.col("side"), F.lit(1)
    rows = joined.select(
        "event_date",
        "campaign",
        F.when(side == DISPLAY_SIDE, counted).alias("_display_alone"),
        F.when(side == EVENT_SIDE, counted).alias("_event_alone"),
        F.when(side == BOTH, counted).alias("_pair"),
        F.when(side == BOTH, F.struct("visit_id", "event_time", "page")).alias("_event"),
        F.when(side == BOTH, F.col("visit_id")).alias("_visit"),
        F.when(side == BOTH, F.col("user_id")).alias("_visitor"),
    )
    displayed = displays.select("event_date", "campaign", counted.alias("_display"))
    together = rows.unionByName(displayed, allowMissingColumns=True).withColumn("campaign", named(F.col("campaign")))
    return distributed_aggregator.aggregate(together, ("event_date", "campaign"), COUNTS)
