"""gold.page_stats and gold.referral_stats: daily counts by page and by referring host."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from assets.gold.fan_in import gather
from assets.gold.visits_cube import counted
from blogdata.contract.publication import Commit
from blogdata.runs.computation import computes
from blogdata.runs.step import Step, Upstream


@computes("gold.page_stats")
def page_stats(step: Step) -> Mapping[str, Commit]:
    """Count each page's views, visits and visitors."""
    period = gather(step)
    return step.publish(period.with_hours(by_page(period.visits)), Upstream(accounts=period.accounts))


@computes("gold.referral_stats")
def referral_stats(step: Step) -> Mapping[str, Commit]:
    """Count the views, visits and visitors each referring host brought."""
    period = gather(step)
    return step.publish(period.with_hours(by_referrer(period.visits)), Upstream(accounts=period.accounts))


def by_page(visits: DataFrame) -> DataFrame:
    """Count by page; `share` is of the day's page views."""
    views = F.sum("events").over(Window.partitionBy("event_date"))
    return counted(visits, ("event_date", "page")).withColumn("share", F.col("events").cast("double") / views)


def by_referrer(visits: DataFrame) -> DataFrame:
    """Count by referring host, without `users`, the older name of `visitors`."""
    return counted(visits, ("event_date", "referral_host")).withColumnRenamed("users", "visitors")
