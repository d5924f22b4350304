"""silver.visits_with_ads: the events of visits with the displays of the ads they name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from assets.transforms import ad_visits
from assets.transforms.visit_times import hour_of
from lake.commit import Account, Commit
from orchestration import accounts
from orchestration.computation import computes
from orchestration.step import Source, Step
from patterns.data_value import dynamic_joiner
from planning.around import Around
from quality.contracts import CONTRACTS

VISITS, ADS = "silver.visits", "silver.ads"
DATASET = "silver.visits_with_ads"
READ = {read.dataset: read.reach for read in CONTRACTS[DATASET].reads if isinstance(read.reach, Around)}


@computes(DATASET)
def visits_with_ads(step: Step) -> Mapping[str, Commit]:
    """Join each hour's events and displays with those of its neighbours that may belong to them."""
    visits, ads = _near(step, VISITS, "event_hour"), _near(step, ADS, "display_hour")
    events, displays = ad_visits.naming_an_ad(visits), ad_visits.displays_of(ads)
    joined = ad_visits.with_ads(events, displays).where(F.col("event_hour").isin(*step.partitions))
    return step.publish(joined, Source(accounts=_accounts(step, visits, events, displays)))


def _near(step: Step, dataset: str, hour: str) -> DataFrame:
    """Read the rows of an input that may belong to rows of the step's hours; none if it was never published."""
    contract = CONTRACTS[dataset]
    if not step.exists(dataset):
        return step.spark.createDataFrame([], contract.ddl)
    hours = {part for key in step.partitions for part in READ[dataset].parts(key)}
    return step.read(dataset).where(F.col(hour).isin(*sorted(hours)))


def _accounts(step: Step, visits: DataFrame, events: DataFrame, displays: DataFrame) -> dict[str, Account]:
    """Account for each hour's rows of both inputs; those left out are counted in the inputs, beside the join."""
    rows = Counter[str]()
    for dataset in filter(step.exists, (VISITS, ADS)):
        rows.update({key: entry.rows_out for key, entry in accounts.entries(step, dataset, step.partitions).items()})
    shown = displays.withColumn("hour", hour_of(F.col("display_time")))
    left_out = (
        visits.where(F.col("ad_id").isNull()).select(
            F.col("event_hour").alias("hour"), F.lit("without_ad").alias("why")
        ),
        dynamic_joiner.with_partner(shown, events, ad_visits.JOIN).select("hour", F.lit("with_event").alias("why")),
    )
    counted = left_out[0].unionByName(left_out[1]).where(F.col("hour").isin(*step.partitions))
    reasons: dict[str, dict[str, int]] = {key: {"without_ad": 0, "with_event": 0} for key in step.partitions}
    for row in counted.groupBy("hour", "why").count().collect():
        reasons[row["hour"]][row["why"]] = int(row["count"])
    return {key: Account(rows_in=rows[key], reasons=reasons[key]) for key in step.partitions}
