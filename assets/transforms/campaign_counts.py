"""Gold's counts of a campaign: its displays, the page views that belong to them, and sketches of their visitors."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from assets.transforms.cubes import named
from blogdata.patterns.data_value import distributed_aggregator
from blogdata.patterns.data_value.distributed_aggregator import How, Measure
from quality.contracts.ads import BOTH, DISPLAY_SIDE, EVENT_SIDE
from quality.contracts.audience import LG_K

COUNTS = (
    Measure(name="displays", column="_display"),
    Measure(name="displays_alone", column="_display_alone"),
    Measure(name="events", how=How.DISTINCT, column="_event"),
    Measure(name="events_alone", column="_event_alone"),
    Measure(name="pairs", column="_pair"),
    Measure(name="visits", how=How.DISTINCT, column="_visit"),
    Measure(name="visitors", how=How.DISTINCT, column="_visitor"),
)
AUDIENCE_BY = ("event_hour", "campaign_of_display")
AUDIENCE = (
    *[measure for measure in COUNTS if measure.name in ("displays_alone", "events", "events_alone", "pairs")],
    Measure(name="visitors", how=How.SKETCH, column="_visitor", lg_k=LG_K),
)


def audience_columns() -> list[Column]:
    """Return what gold.campaign_audience_hourly is aggregated from: columns of a row of silver.visits_with_ads."""
    return [named(F.col("campaign")).alias(AUDIENCE_BY[1]), *_parts()]


def _parts() -> list[Column]:
    side, one = F.col("side"), F.lit(1)
    return [
        F.when(side == DISPLAY_SIDE, one).alias("_display_alone"),
        F.when(side == EVENT_SIDE, one).alias("_event_alone"),
        F.when(side == BOTH, one).alias("_pair"),
        F.when(side == BOTH, F.struct("visit_id", "event_time", "page")).alias("_event"),
        F.when(side == BOTH, F.col("visit_id")).alias("_visit"),
        F.when(side == BOTH, F.col("user_id")).alias("_visitor"),
    ]


def campaign_stats(joined: DataFrame, displays: DataFrame) -> DataFrame:
    """Count by campaign.

    Args:
        joined: Rows of silver.visits_with_ads with `event_date` STRING.
        displays: Rows of silver.ads with `event_date` STRING, the day of the display.

    Returns:
        Rows of gold.campaign_stats, without `hours_present`.
    """
    rows = joined.select("event_date", "campaign", *_parts())
    shown = displays.select("event_date", "campaign", F.lit(1).alias("_display"))
    together = rows.unionByName(shown, allowMissingColumns=True).withColumn("campaign", named(F.col("campaign")))
    return distributed_aggregator.aggregate(together, ("event_date", "campaign"), COUNTS)
