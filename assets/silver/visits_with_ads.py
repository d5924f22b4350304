"""silver.visits_with_ads: the events of visits with the displays of the ads they name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from assets.transforms.visit_times import hour_of
from blogdata.lake.commit import Account, Commit
from blogdata.orchestration import accounts
from blogdata.orchestration.computation import computes
from blogdata.orchestration.step import Step, Upstream
from blogdata.patterns.data_value import dynamic_joiner
from blogdata.patterns.data_value.dynamic_joiner import Side, TimedJoin
from blogdata.planning.around import Around
from quality.contracts import CONTRACTS
from quality.contracts.ads import BELONGS, BOTH, DISPLAY_SIDE, EVENT_SIDE, WITH_ADS

JOIN = TimedJoin(
    on=("visit_id", "ad_id"),
    left=Side(name=EVENT_SIDE, time="event_time"),
    right=Side(name=DISPLAY_SIDE, time="display_time"),
    bound=BELONGS,
    late=timedelta(hours=1),
    both=BOTH,
)
"""Displays and events may each come up to an hour late."""
_COLUMNS = [column.name for column in WITH_ADS.columns]


def naming_an_ad(visits: DataFrame, more: Sequence[str] = ()) -> DataFrame:
    """Select the events that name an ad, with the columns that the joined rows have of them."""
    named = visits.where(F.col("ad_id").isNotNull())
    return named.select("visit_id", "ad_id", "event_time", "user_id", "keep_private", "page", *more)


def displays_of(ads: DataFrame, more: Sequence[str] = ()) -> DataFrame:
    """Select the columns that the joined rows have of a display."""
    return ads.select("visit_id", "ad_id", "display_time", "campaign", F.col("page").alias("display_page"), *more)


def with_ads(events: DataFrame, displays: DataFrame, more: Sequence[str] = ()) -> DataFrame:
    """Join events with displays.

    Args:
        events: Rows of :func:`naming_an_ad`.
        displays: Rows of :func:`displays_of`.

    Returns:
        Rows of silver.visits_with_ads; a stream if both are.
    """
    seconds = F.unix_micros("event_time") - F.unix_micros("display_time")
    return (
        dynamic_joiner.join(events, displays, JOIN)
        .withColumns(
            {
                "event_hour": hour_of(F.coalesce("event_time", "display_time")),
                "seconds_between": seconds / F.lit(1_000_000.0),
            }
        )
        .select(*_COLUMNS, *more)
    )


VISITS, ADS = "silver.visits", "silver.ads"
DATASET = "silver.visits_with_ads"
WITHOUT_AD, WITH_EVENT, PAIRS = "without_ad", "with_event", "pairs"
READ = {read.dataset: read.reach for read in CONTRACTS[DATASET].reads if isinstance(read.reach, Around)}


@computes(DATASET)
def visits_with_ads(step: Step) -> Mapping[str, Commit]:
    """Join each hour's events and displays with those of its neighbours that may belong to them."""
    visits, ads = _near(step, VISITS, "event_hour"), _near(step, ADS, "display_hour")
    displays = displays_of(ads)
    joined = with_ads(naming_an_ad(visits), displays).where(F.col("event_hour").isin(*step.partitions))
    counted = _counted(step, visits, displays, joined)
    return step.publish(
        joined,
        Upstream(
            accounts=_accounts(step, counted),
            expected={key: {"pairs": counted[key, PAIRS]} for key in step.partitions},
        ),
    )


def _near(step: Step, dataset: str, hour: str) -> DataFrame:
    """Read the rows of an input that may belong to rows of the step's hours; none if it was never published."""
    contract = CONTRACTS[dataset]
    if not step.exists(dataset):
        return step.spark.createDataFrame([], contract.ddl)
    hours = {part for key in step.partitions for part in READ[dataset].parts(key)}
    return step.read(dataset).where(F.col(hour).isin(*sorted(hours)))


def _counted(step: Step, visits: DataFrame, displays: DataFrame, joined: DataFrame) -> Counter[tuple[str, str]]:
    """Count what is left out of each hour, and its pairs: a pair that is lost is missed in no input."""
    events, shown = naming_an_ad(visits), displays.withColumn("hour", hour_of(F.col("display_time")))
    parts = {
        WITHOUT_AD: visits.where(F.col("ad_id").isNull()).select(F.col("event_hour").alias("hour")),
        WITH_EVENT: dynamic_joiner.with_partner(shown, events, JOIN).select("hour"),
        PAIRS: joined.where(F.col("side") == BOTH).select(F.col("event_hour").alias("hour")),
    }
    rows = reduce(DataFrame.unionByName, (frame.withColumn("part", F.lit(name)) for name, frame in parts.items()))
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
