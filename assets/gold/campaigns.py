"""gold.campaign_stats: displays of campaigns by day, and the page views that belong to them."""

from collections.abc import Mapping

from pyspark.sql import functions as F

from assets.gold.fan_in import DELIVERED_ADS, DELIVERED_VISITS, gather
from assets.transforms import campaign_counts
from blogdata.lake.commit import Commit
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
