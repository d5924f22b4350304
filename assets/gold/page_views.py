"""Page views of days and weeks, counted: gold.visits_cube_daily and _weekly, gold.page_stats, gold.referral_stats.

:func:`gather` reads the event hours of a longer period (Aligned Fan-In), and counts how many of them are present. An
hour is present if it was delivered, with or without rows, its delivery was taken in, and it is published in the dataset
that is read. Rows alone are no proof: early or late rows from another hour's delivery publish an event hour whose own
delivery never came, or is held. If an outage made a producer send the rows of an hour with a later one, the flag of the
empty hour marks it as delivered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from blogdata.contract.partitions import Grain, finer
from blogdata.contract.publication import Account, Commit
from blogdata.contract.schema import Partitioning
from blogdata.patterns.data_flow import aligned_fan_in
from blogdata.patterns.data_value import distributed_aggregator
from blogdata.patterns.data_value.distributed_aggregator import How, Measure
from blogdata.runs import accounts, slices
from blogdata.runs.computation import computes
from blogdata.runs.step import Step, Upstream
from blogdata.table.target import Additions
from quality.contracts.columns import UNKNOWN
from quality.contracts.page_views import CUBE_KEY

ENRICHED_VISITS = "silver.visits_enriched"
DELIVERED_VISITS = "bronze.visits"
DELIVERED_ADS = "bronze.ads"
TAKEN_IN_BY = {DELIVERED_VISITS: "silver.visits", DELIVERED_ADS: "silver.ads"}
"""Dataset by hour of arrival to the one by hour of the event that is computed from it."""
COUNTS = (
    Measure(name="events"),
    Measure(name="visits", how=How.DISTINCT, column="visit_id"),
    Measure(name="users", how=How.DISTINCT, column="user_id"),
)


@computes("gold.visits_cube_daily")
def visits_cube_daily(step: Step) -> Mapping[str, Commit]:
    """Aggregate a day from its 24 hours."""
    return _cube(step, "event_date")


@computes("gold.visits_cube_weekly")
def visits_cube_weekly(step: Step) -> Mapping[str, Commit]:
    """Aggregate a week from its hours: distinct visitors of days do not add up to those of the week."""
    return _cube(step, "event_week")


def _cube(step: Step, period_column: str) -> Mapping[str, Commit]:
    period = gather(step)
    cube = counted(period.visits, (period_column, *CUBE_KEY))
    return step.publish(period.with_hours(cube), Upstream(accounts=period.accounts))


@computes("gold.page_stats")
def page_stats(step: Step) -> Mapping[str, Commit]:
    """Count each page's views, visits and visitors; `share` is of the day's page views."""
    period = gather(step)
    share = F.col("events").cast("double") / F.sum("events").over(Window.partitionBy("event_date"))
    pages = counted(period.visits, ("event_date", "page")).withColumn("share", share)
    return step.publish(period.with_hours(pages), Upstream(accounts=period.accounts))


@computes("gold.referral_stats")
def referral_stats(step: Step) -> Mapping[str, Commit]:
    """Count the views, visits and visitors each referring host brought; `users` is the older name of `visitors`."""
    period = gather(step)
    hosts = counted(period.visits, ("event_date", "referral_host")).withColumnRenamed("users", "visitors")
    return step.publish(period.with_hours(hosts), Upstream(accounts=period.accounts))


def counted(visits: DataFrame, by: tuple[str, ...]) -> DataFrame:
    """Count page views, visits and visitors by a period, such as `event_date`, and dimensions."""
    named_visits = visits.withColumns({name: named(F.col(name)) for name in by[1:]})
    # Not salted: for exact distinct counts the engine first groups by the counted values.
    return distributed_aggregator.aggregate(named_visits, by, COUNTS)


def named(dimension: Column) -> Column:
    """Name a dimension's missing values: null and empty become `unknown`, so that each row is in one group."""
    return F.when(F.length(dimension) > 0, dimension).otherwise(F.lit(UNKNOWN))


@dataclass(frozen=True)
class Period:
    """The rows of the step's days or weeks."""

    visits: DataFrame
    accounts: dict[str, Account]
    column: str
    hours: Mapping[str, int]

    def with_hours(self, frame: DataFrame) -> DataFrame:
        """Add `hours_present` INT, by the period's key in the contract's partition column."""
        present = F.create_map(*[F.lit(part) for item in self.hours.items() for part in item])
        return frame.withColumn("hours_present", present[F.col(self.column)])


def gather(
    step: Step,
    dataset: str = ENRICHED_VISITS,
    delivered_to: Sequence[str] = (DELIVERED_VISITS,),
    additions: Additions = Additions(),
) -> Period:
    """Read the hours of the step's periods; of those that are only added to, the rows that they lack."""
    partitioning = step.contract.partitioning
    assert partitioning is not None
    hours = {key: finer(key, partitioning.grain, Grain.HOUR) for key in step.partitions}
    within = [hour for period in hours.values() for hour in period]
    published = accounts.entries(step, dataset, within)
    # Not inputs: none of their rows are read, and a new delivery arrives through the input.
    events = step.events
    delivered = [
        events.publications(name, within).keys() - accounts.not_taken_in(events, name, TAKEN_IN_BY[name], within)
        for name in delivered_to
    ]
    present = published.keys() & set.intersection(*delivered)
    parts = aligned_fan_in.completeness(step.partitions, partitioning.grain, Grain.HOUR, present)
    whole = {hour for period in hours.keys() - additions.of.keys() for hour in hours[period]}
    came = [part for added in additions.of.values() for part in added.slices]
    new = published.keys() & whole | {part for part in came if " " not in part}
    late = [part for part in came if " " in part]
    rows = step.read(dataset, new | {part.split()[0] for part in late}).where(slices.rows_of(new, late))
    return Period(
        visits=keyed(rows, partitioning).where(F.col(partitioning.column).isin(*step.partitions)),
        accounts=accounts.gathered(step, dataset, lambda period: hours[period]),
        column=partitioning.column,
        hours={period: completeness.present for period, completeness in parts.items()},
    )


def keyed(visits: DataFrame, partitioning: Partitioning) -> DataFrame:
    """Add the partition column: the day or week of `event_hour`."""
    day = F.to_date(F.substring("event_hour", 1, 10))
    key = day if partitioning.grain is Grain.DAY else F.date_trunc("week", day).cast("date")
    return visits.withColumn(partitioning.column, key.cast("string"))
