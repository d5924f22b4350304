"""gold.requests_daily: all requests of access logs, by day, host, kind, status and method; paths often not found.

Nobody is recognized in them: there is no address and no agent, a path is without its query, and only the most frequent
paths that were not found are named.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from assets.silver.arrival_hours import requests
from blogdata.contract.partitions import Grain, coarser
from blogdata.contract.publication import Account, Commit
from blogdata.patterns.data_flow import aligned_fan_in
from blogdata.runs import accounts
from blogdata.runs.computation import computes
from blogdata.runs.step import Step, Upstream
from quality.contracts import requests_daily as r
from quality.contracts.columns import DIRECT, UNKNOWN
from quality.contracts.requests_daily import NO_REQUESTS

_BY = ("event_date", "host", "kind", "status", "method", "path", "referral_host")


def daily(lines: DataFrame) -> DataFrame:
    """Count the requests of each day: rows of gold.requests_daily without `hours_present`.

    `lines` are usable lines of access logs, rows of bronze.visits.
    """
    status = F.coalesce("status", F.lit(r.OTHER))
    is_missing = status.isin("404", "410") | status.startswith("5")
    path = F.when(is_missing & F.col("page").isNotNull(), F.substring("page", 1, r.LONGEST_PATH)).otherwise("")
    rows = lines.select(
        F.substring("event_hour", 1, 10).alias("event_date"),
        F.coalesce("host", F.lit(UNKNOWN)).alias("host"),
        _kind().alias("kind"),
        status.alias("status"),
        F.coalesce("method", F.lit(r.OTHER)).alias("method"),
        path.alias("path"),
        F.when(path != "", F.substring(F.coalesce("referral", F.lit(DIRECT)), 1, 253))
        .otherwise("")
        .alias("referral_host"),
        F.coalesce("bytes", F.lit(0)).alias("bytes"),
    )
    counted = rows.groupBy(*_BY).agg(F.count(F.lit(1)).alias("requests"), F.sum("bytes").alias("bytes"))
    summed = _bounded(counted).groupBy(*_BY).agg(F.sum("requests").alias("requests"), F.sum("bytes").alias("bytes"))
    of_class = F.concat(F.substring("status", 1, 1), F.lit("xx"))
    return summed.withColumn("status_class", F.when(F.col("status") == r.OTHER, F.col("status")).otherwise(of_class))


def _kind() -> Column:
    return (
        F.when(F.col("is_feed"), "feed")
        .when(F.col("crawler") == "monitoring", "monitoring")
        .when(F.col("crawler").isNotNull(), F.concat(F.lit(r.CRAWLER), "crawler"))
        .when(F.col("is_asset"), "asset")
        .otherwise("page")
    )


def _bounded(counted: DataFrame) -> DataFrame:
    """Name the most frequent hosts and missing paths of a day; clients can make up any number of them."""
    of_host = counted.withColumn("_of_host", F.sum("requests").over(Window.partitionBy("event_date", "host")))
    by_host = Window.partitionBy("event_date").orderBy(F.desc("_of_host"), "host")
    ranked = of_host.withColumn("_host", F.dense_rank().over(by_host))
    bounded = F.when(F.col("_host") <= r.MOST_HOSTS, F.col("host")).otherwise(r.OTHER)
    by_path = Window.partitionBy("event_date", F.col("path") == "").orderBy(F.desc("requests"), *_BY)
    named = (F.col("path") != "") & (F.col("_path") <= r.MOST_PATHS)
    return ranked.withColumns({"host": bounded, "_path": F.row_number().over(by_path)}).withColumns(
        {name: F.when(named, F.col(name)).otherwise("") for name in ("path", "referral_host")}
    )


LINES = "bronze.visits"


@computes("gold.requests_daily")
def requests_daily(step: Step) -> Mapping[str, Commit]:
    """Count the requests of each day, whenever their lines arrived."""
    arrivals = accounts.entries(step, LINES)
    counted = dict.fromkeys(step.partitions, 0)
    read, arrived = set(), set()
    for arrival, entry in arrivals.items():
        for (hour, _, line_format), count in entry.breakdowns["event_hours"].items():
            if (
                hour is not None
                and line_format not in NO_REQUESTS
                and (day := coarser(hour, Grain.HOUR, Grain.DAY)) in counted
            ):
                counted[day] += count
                arrived.add(arrival)
                read.add(hour)
    present = aligned_fan_in.completeness(step.partitions, Grain.DAY, Grain.HOUR, set(arrivals))
    hours = F.create_map(*[F.lit(part) for day, parts in present.items() for part in (day, parts.present)])
    which = F.col("arrival_hour").isin(*sorted(arrived)) & F.col("event_hour").isin(*sorted(read))
    rows = daily(requests(step, which)).withColumn("hours_present", hours[F.col("event_date")])
    return step.publish(rows, Upstream(accounts={day: Account(rows_in=rows_in) for day, rows_in in counted.items()}))
