"""Gold's counts: page views, visits and visitors of a period, by device, browser, origin and country, or by page.

Every input row is counted once, in exactly one group: a dimension that is null or empty becomes `unknown`.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from blogdata.patterns.data_value import distributed_aggregator
from blogdata.patterns.data_value.distributed_aggregator import How, Measure
from quality.contracts.columns import UNKNOWN
from quality.contracts.page_views import CUBE_KEY

COUNTS = (
    Measure(name="events"),
    Measure(name="visits", how=How.DISTINCT, column="visit_id"),
    Measure(name="users", how=How.DISTINCT, column="user_id"),
)


def visits_cube(visits: DataFrame, period: str) -> DataFrame:
    """Count by device, browser, origin and country.

    Returns:
        Rows of gold.visits_cube_daily or gold.visits_cube_weekly, without `hours_present`.
    """
    return _counted(visits, (period, *CUBE_KEY))


def page_stats(visits: DataFrame) -> DataFrame:
    """Count by page.

    Args:
        visits: Rows of silver.visits_enriched with `event_date` STRING.

    Returns:
        Rows of gold.page_stats, without `hours_present`; `share` is of the day's page views.
    """
    counted = _counted(visits, ("event_date", "page"))
    views = F.sum("events").over(Window.partitionBy("event_date"))
    return counted.withColumn("share", F.col("events").cast("double") / views)


def referral_stats(visits: DataFrame) -> DataFrame:
    """Count by referring host.

    Args:
        visits: Rows of silver.visits_enriched with `event_date` STRING.

    Returns:
        Rows of gold.referral_stats, without `hours_present` and without `users`, the older name of `visitors`.
    """
    return _counted(visits, ("event_date", "referral_host")).withColumnRenamed("users", "visitors")


def _counted(visits: DataFrame, by: tuple[str, ...]) -> DataFrame:
    named_visits = visits.withColumns({name: named(F.col(name)) for name in by[1:]})
    # Not salted: for exact distinct counts the engine first groups by the counted values.
    return distributed_aggregator.aggregate(named_visits, by, COUNTS)


def named(dimension: Column) -> Column:
    """Name a dimension's missing values: null and empty become `unknown`."""
    return F.when(F.length(dimension) > 0, dimension).otherwise(F.lit(UNKNOWN))
