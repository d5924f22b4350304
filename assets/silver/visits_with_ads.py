"""silver.visits_with_ads: the events of visits with the displays of the ads they name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from assets.transforms import ad_visits
from assets.transforms.ad_visits import hour_of
from blogdata.lake.commit import Account, Commit
from blogdata.orchestration import accounts
from blogdata.orchestration.computation import computes
from blogdata.orchestration.step import Step, Upstream
from blogdata.patterns.data_value import dynamic_joiner
from blogdata.planning.reaches import Around
from quality.contracts import CONTRACTS

VISITS, ADS = "silver.visits", "silver.ads"
DATASET = "silver.visits_with_ads"
WITHOUT_AD, WITH_EVENT = "without_ad", "with_event"
READ = {read.dataset: read.reach for read in CONTRACTS[DATASET].reads if isinstance(read.reach, Around)}


@computes(DATASET)
def visits_with_ads(step: Step) -> Mapping[str, Commit]:
    """Join each hour's events and displays with those of its neighbours that may belong to them."""
    visits, ads = _near(step, VISITS), _near(step, ADS)
    displays = ad_visits.displays_of(ads)
    joined = ad_visits.with_ads(ad_visits.naming_an_ad(visits), displays)
    return step.publish(
        joined.where(F.col("event_hour").isin(*step.partitions)),
        Upstream(accounts=_accounts(step, _counted(step, visits, displays))),
    )


def _near(step: Step, dataset: str) -> DataFrame:
    """Read the rows of an input that may belong to rows of the step's hours; none if it was never published."""
    contract = CONTRACTS[dataset]
    if not step.exists(dataset):
        return step.spark.createDataFrame([], contract.ddl)
    hours = {part for key in step.partitions for part in READ[dataset].parts(key)}
    return step.read(dataset, hours)


def _counted(step: Step, visits: DataFrame, displays: DataFrame) -> Counter[tuple[str, str]]:
    """Count what is left out of each hour."""
    alone = visits.where("ad_id IS NULL").select(F.col("event_hour").alias("hour"), F.lit(WITHOUT_AD).alias("part"))
    shown = displays.withColumns({"hour": hour_of(F.col("display_time")), "part": F.lit(WITH_EVENT)})
    events = ad_visits.naming_an_ad(visits)
    rows = alone.unionByName(dynamic_joiner.with_partner(shown, events, ad_visits.JOIN).select("hour", "part"))
    found = rows.where(F.col("hour").isin(*step.partitions)).groupBy("hour", "part").count().collect()
    return Counter({(row["hour"], row["part"]): int(row["count"]) for row in found})


def _accounts(step: Step, counted: Counter[tuple[str, str]]) -> dict[str, Account]:
    """Account for each hour's rows of both inputs."""
    rows = Counter[str]()
    for dataset in filter(step.exists, (VISITS, ADS)):
        rows.update({key: entry.rows_out for key, entry in accounts.entries(step, dataset, step.partitions).items()})
    return {
        key: Account(rows_in=rows[key], reasons={name: counted[key, name] for name in (WITHOUT_AD, WITH_EVENT)})
        for key in step.partitions
    }
