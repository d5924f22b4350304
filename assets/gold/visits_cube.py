"""gold.visits_cube_daily and _weekly: page views, visits and visitors by device, browser, origin and country.

Every input row is counted once, in exactly one group: a dimension that is null or empty becomes `unknown`.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from assets.gold.fan_in import gather
from blogdata.contract.publication import Commit
from blogdata.patterns.data_value import distributed_aggregator
from blogdata.patterns.data_value.distributed_aggregator import How, Measure
from blogdata.runs.computation import computes
from blogdata.runs.step import Step, Upstream
from quality.contracts.columns import UNKNOWN
from quality.contracts.page_views import CUBE_KEY

COUNTS = (
    Measure(name="events"),
    Measure(name="visits", how=How.DISTINCT, column="visit_id"),
    Measure(name="users", how=How.DISTINCT, column="user_id"),
)


@computes("gold.visits_cube_daily")
def visits_cube_daily(step: Step) -> Mapping[str, Commit]:
    """Aggregate a day from its 24 hours."""
    return _published(step, "event_date")


@computes("gold.visits_cube_weekly")
def visits_cube_weekly(step: Step) -> Mapping[str, Commit]:
    """Aggregate a week from its hours: distinct visitors of days do not add up to those of the week."""
    return _published(step, "event_week")


def _published(step: Step, period_column: str) -> Mapping[str, Commit]:
    period = gather(step)
    cube = counted(period.visits, (period_column, *CUBE_KEY))
    return step.publish(period.with_hours(cube), Upstream(accounts=period.accounts))


def counted(visits: DataFrame, by: tuple[str, ...]) -> DataFrame:
    """Count page views, visits and visitors by a period, such as `event_date`, and dimensions."""
    named_visits = visits.withColumns({name: named(F.col(name)) for name in by[1:]})
    # Not salted: for exact distinct counts the engine first groups by the counted values.
    return distributed_aggregator.aggregate(named_visits, by, COUNTS)


def named(dimension: Column) -> Column:
    """Name a dimension's missing values: null and empty become `unknown`."""
    return F.when(F.length(dimension) > 0, dimension).otherwise(F.lit(UNKNOWN))
