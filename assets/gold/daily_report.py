"""gold.daily_report: what happened on a day, one figure a row, from the sources that have come; each with its share."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from assets.gold.page_views import TAKEN_IN_BY
from blogdata.contract.partitions import Grain, finer
from blogdata.contract.publication import Account, Commit
from blogdata.patterns.data_flow import unaligned_fan_in
from blogdata.patterns.data_flow.unaligned_fan_in import Gathered
from blogdata.patterns.data_value import distributed_aggregator
from blogdata.patterns.data_value.distributed_aggregator import How, Measure
from blogdata.runs import accounts
from blogdata.runs.computation import computes
from blogdata.runs.step import Step, Upstream
from quality.contracts import CONTRACTS
from quality.contracts.daily_report import FIGURES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


VISITS, DEAD_LETTERS, ADS = "silver.visits_enriched", "bronze.dead_letters", "silver.ads"
DELIVERED = {VISITS: "bronze.visits", DEAD_LETTERS: "bronze.visits", ADS: "bronze.ads"}
"""The deliveries of each source."""
COUNTS = (
    Measure(name="views"),
    Measure(name="visits", how=How.DISTINCT, column="visit_id"),
    Measure(name="visitors", how=How.DISTINCT, column="user_id"),
)
TOP = {"top_page": "page", "top_referrer": "referral_host"}


def report(spark: SparkSession, sources: Mapping[str, DataFrame], gathered: Mapping[str, Gathered]) -> DataFrame:
    """Label the figures of :func:`figures` as rows of gold.daily_report."""
    rows = unaligned_fan_in.labelled(figures(spark, sources), gathered, FIGURES)
    named = {"period": "event_date", "parts_present": "hours_present", "whole": "report_completeness"}
    return rows.withColumnsRenamed(named)


def figures(spark: SparkSession, sources: Mapping[str, DataFrame]) -> DataFrame:
    """Count the figures of each day from the sources that have come, which have the day as `period`.

    Returns `period`, `metric`, `value`, `detail`; a day without rows of a source has no figure of it.
    """
    parts = [spark.createDataFrame([], "period STRING, metric STRING, value BIGINT, detail STRING")]
    if VISITS in sources:
        visits = sources[VISITS]
        parts += [_long(distributed_aggregator.aggregate(visits, ("period",), COUNTS)), _top(visits)]
    for source, metric in ((DEAD_LETTERS, "dead_letters"), (ADS, "ad_displays")):
        if source in sources:
            counted = distributed_aggregator.aggregate(sources[source], ("period",), (Measure(name=metric),))
            parts.append(_long(counted))
    return reduce(DataFrame.unionByName, parts)


def _long(counted: DataFrame) -> DataFrame:
    return counted.unpivot(
        ["period"], [name for name in counted.columns if name != "period"], "metric", "value"
    ).withColumn("detail", F.lit(None).cast("string"))


def _top(visits: DataFrame) -> DataFrame:
    """Find the page and the referrer with most page views; of several with as many, the first by name."""
    sets = {metric: ("period", column) for metric, column in TOP.items()}
    counted = distributed_aggregator.aggregate_sets(visits, sets, (Measure(name="views"),))
    # The columns of the other sets are null.
    first = F.min(F.struct(-F.col("views"), F.coalesce(*TOP.values()).alias("detail"))).alias("first")
    return (
        counted.groupBy("period", F.col(distributed_aggregator.SET).alias("metric"))
        .agg(first)
        .select("period", "metric", (-F.col("first")["col1"]).alias("value"), "first.detail")
    )


@computes("gold.daily_report")
def daily_report(step: Step) -> Mapping[str, Commit]:
    """Count each day from what is there of its sources (Unaligned Fan-In)."""
    hours = {day: finer(day, Grain.DAY, Grain.HOUR) for day in step.partitions}
    within = [hour for keys in hours.values() for hour in keys]
    events, frames, sources, rows = step.events, {}, {}, dict.fromkeys(step.partitions, 0)
    for read in step.contract.reads:
        # Never read itself: a delivery arrives through the source.
        name = DELIVERED[read.dataset]
        delivered = events.publications(name)
        published = accounts.entries(step, read.dataset, within) if step.exists(read.dataset) else {}
        # Dead letters are those of the hour of arrival: they exist once it was delivered, held or not.
        held = () if read.dataset == DEAD_LETTERS else accounts.not_taken_in(events, name, TAKEN_IN_BY[name], within)
        sources[read.dataset] = unaligned_fan_in.PeriodSource(published=published, delivered=delivered, held=held)
        if published:
            column = CONTRACTS[read.dataset].partition_column
            assert column is not None
            frames[read.dataset] = step.read(read.dataset, published).withColumn("period", F.substring(column, 1, 10))
        for hour, entry in published.items():
            rows[hour[:10]] += entry.rows_out
    gathered = unaligned_fan_in.gather(step.partitions, Grain.DAY, Grain.HOUR, sources)
    return step.publish(
        report(step.spark, frames, gathered),
        Upstream(accounts={day: Account(rows_in=count) for day, count in rows.items()}),
    )
