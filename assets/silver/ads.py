"""silver.ads: every display of an ad once; silver.visits_with_ads: events of visits with the displays of their ads.

The stream of ads joins with the same functions (Dynamic Joiner).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from assets.silver.arrival_hours import ARRIVAL_ORDER, earliest_arrival, hour_of, require_usable
from blogdata.contract.publication import Account, Commit
from blogdata.landing.lines import is_replay
from blogdata.patterns.data_value import dynamic_joiner
from blogdata.patterns.data_value.dynamic_joiner import Side, TimedJoin
from blogdata.patterns.error_management import windowed_deduplicator
from blogdata.planning.reaches import Around
from blogdata.runs import accounts
from blogdata.runs.computation import computes
from blogdata.runs.step import Step, Upstream
from blogdata.table.target import Companion
from quality.contracts import CONTRACTS
from quality.contracts.ads import BELONGS, DISPLAY_SIDE, EVENT_SIDE

IDENTITY = CONTRACTS["silver.ads"].key


@computes("silver.ads")
def ads(step: Step) -> Mapping[str, Commit]:
    """Compute each hour of display from all of bronze, whenever its rows arrived; conflicts are published with it."""
    since = earliest_arrival(step.partitions)
    above = accounts.entries(step, "bronze.ads", since=since)
    require_usable(step)
    displays = step.read("bronze.ads").where(
        (F.col("arrival_hour") >= since) & F.col("display_hour").isin(*step.partitions) & (F.size("reasons") == 0)
    )
    rows = dict.fromkeys(step.partitions, 0)
    for entry in above.values():
        for (hour,), count in entry.breakdowns["display_hours"].items():
            if hour in rows:
                rows[hour] += count
    accounted = {hour: Account(rows_in=count) for hour, count in rows.items()}
    in_order = displays.withColumn("_replay", is_replay())
    identity = {"key": ("display_hour", *IDENTITY), "order": ARRIVAL_ORDER}
    payload = F.xxhash64("raw")
    conflicts = Companion(
        contract=CONTRACTS["silver.ad_conflicts"],
        frame=windowed_deduplicator.conflicting(in_order, payload=payload, **identity),
        counted_measure="reason.duplicates",
        kept_measure="conflicts",
        dropped_reason="identical",
    )
    unique = windowed_deduplicator.deduplicate(in_order, payload=payload, **identity)
    return step.publish(unique, Upstream(accounts=accounted), companions=[conflicts])


VISITS, ADS = "silver.visits", "silver.ads"
JOINED = "silver.visits_with_ads"
WITHOUT_AD, WITH_EVENT = "without_ad", "with_event"
READ = {read.dataset: read.reach for read in CONTRACTS[JOINED].reads if isinstance(read.reach, Around)}


@computes(JOINED)
def visits_with_ads(step: Step) -> Mapping[str, Commit]:
    """Join each hour's events and displays with those of its neighbours that may belong to them."""
    visits, ads = _near(step, VISITS), _near(step, ADS)
    displays = displays_of(ads)
    joined = with_ads(naming_an_ad(visits), displays)
    return step.publish(
        joined.where(F.col("event_hour").isin(*step.partitions)),
        Upstream(accounts=_accounts(step, _counted(step, visits, displays))),
    )


JOIN = TimedJoin(
    on=("visit_id", "ad_id"),
    left=Side(name=EVENT_SIDE, time="event_time"),
    right=Side(name=DISPLAY_SIDE, time="display_time"),
    bound=BELONGS,
    late=timedelta(hours=1),
)
"""Displays and events may each come up to an hour late."""
_COLUMNS = [column.name for column in CONTRACTS[JOINED].columns]


def naming_an_ad(visits: DataFrame, more: Sequence[str] = ()) -> DataFrame:
    """Select the events that name an ad, with the columns that the joined rows have of them."""
    named = visits.where(F.col("ad_id").isNotNull())
    # The state of a stream, also of one that was begun by an earlier release, has it as never null.
    private = F.coalesce("keep_private", F.lit(True)).alias("keep_private")
    return named.select("visit_id", "ad_id", "event_time", "user_id", private, "page", *more)


def displays_of(ads: DataFrame, more: Sequence[str] = ()) -> DataFrame:
    return ads.select("visit_id", "ad_id", "display_time", "campaign", F.col("page").alias("display_page"), *more)


def with_ads(events: DataFrame, displays: DataFrame, more: Sequence[str] = ()) -> DataFrame:
    """Join events and displays of the functions above to rows of silver.visits_with_ads; a stream if both are."""
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
    dated = displays.withColumns({"hour": hour_of(F.col("display_time")), "part": F.lit(WITH_EVENT)})
    events = naming_an_ad(visits)
    rows = alone.unionByName(dynamic_joiner.with_partner(dated, events, JOIN).select("hour", "part"))
    counts = rows.where(F.col("hour").isin(*step.partitions)).groupBy("hour", "part").count().collect()
    return Counter({(row["hour"], row["part"]): int(row["count"]) for row in counts})


def _accounts(step: Step, counted: Counter[tuple[str, str]]) -> dict[str, Account]:
    """Account for each hour's rows of both inputs."""
    rows = Counter[str]()
    for dataset in filter(step.exists, (VISITS, ADS)):
        rows.update({key: entry.rows_out for key, entry in accounts.entries(step, dataset, step.partitions).items()})
    return {
        key: Account(rows_in=rows[key], reasons={name: counted[key, name] for name in (WITHOUT_AD, WITH_EVENT)})
        for key in step.partitions
    }
