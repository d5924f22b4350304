"""Gold's counts of a campaign: its displays, and the page views that belong to them."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from assets.transforms.cubes import named
from patterns.data_value import distributed_aggregator
from patterns.data_value.distributed_aggregator import How, Measure
from quality.contracts.ads import BOTH, DISPLAY_SIDE, EVENT_SIDE

COUNTS = (
    Measure(name="displays", column="_display"),
    Measure(name="displays_alone", column="_display_alone"),
    Measure(name="events", how=How.DISTINCT, column="_event"),
    Measure(name="events_alone", column="_event_alone"),
    Measure(name="pairs", column="_pair"),
    Measure(name="visits", how=How.DISTINCT, column="_visit"),
    Measure(name="visitors", how=How.DISTINCT, column="_visitor"),
)


def campaign_stats(joined: DataFrame, displays: DataFrame) -> DataFrame:
    """Count by campaign.

    Args:
        joined: Rows of silver.visits_with_ads with `event_date` STRING.
        displays: Rows of silver.ads with `event_date` STRING, the day of the display.

    Returns:
        Rows of gold.campaign_stats, without `hours_present`.
    """
    side, one = F.col("side"), F.lit(1)
    rows = joined.select(
        "event_date",
        "campaign",
        F.when(side == DISPLAY_SIDE, one).alias("_display_alone"),
        F.when(side == EVENT_SIDE, one).alias("_event_alone"),
        F.when(side == BOTH, one).alias("_pair"),
        F.when(side == BOTH, F.struct("visit_id", "event_time", "page")).alias("_event"),
        F.when(side == BOTH, F.col("visit_id")).alias("_visit"),
        F.when(side == BOTH, F.col("user_id")).alias("_visitor"),
    )
    shown = displays.select("event_date", "campaign", one.alias("_display"))
    together = rows.unionByName(shown, allowMissingColumns=True).withColumn("campaign", named(F.col("campaign")))
    return distributed_aggregator.aggregate(together, ("event_date", "campaign"), COUNTS)
