"""gold.campaign_stats: displays, and the page views that belong to them."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from assets.gold.fan_in import DELIVERED_ADS, DELIVERED_VISITS, gather
from assets.gold.visits_cube import named
from blogdata.lake.commit import Commit
from blogdata.orchestration import accounts
from blogdata.orchestration.computation import computes
from blogdata.orchestration.step import Step, Upstream
from blogdata.patterns.data_value import distributed_aggregator
from blogdata.patterns.data_value.distributed_aggregator import How, Measure
from blogdata.publish.partitions import Grain, finer
from quality.contracts.ads import BOTH, DISPLAY_SIDE, EVENT_SIDE

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
    shown = accounts.gathered(step, DISPLAYS, lambda key: hours[key])
    expected = {key: {"displays": account.rows_in} for key, account in shown.items()}
    return step.publish(
        period.with_hours(by_campaign(period.visits, displays)), Upstream(accounts=period.accounts, expected=expected)
    )


def by_campaign(joined: DataFrame, displays: DataFrame) -> DataFrame:
    """Count by campaign: `event_date` STRING is of the row's hour, and of a display its day."""
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
    shown = displays.select("event_date", "campaign", F.lit(1).alias("_display"))
    together = rows.unionByName(shown, allowMissingColumns=True).withColumn("campaign", named(F.col("campaign")))
    return distributed_aggregator.aggregate(together, ("event_date", "campaign"), COUNTS)
