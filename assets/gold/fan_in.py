"""Gathers the event hours of a longer period (Aligned Fan-In), and says how many of them were there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from orchestration import accounts
from orchestration.step import Step
from patterns.core.commit import Account
from patterns.core.partitions import Grain, finer
from patterns.data_flow import aligned_fan_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

HOURLY = "silver.visits_enriched"


@dataclass(frozen=True)
class Period:
    """The visits of the step's days or weeks.

    Args:
        visits: Rows of silver.visits_enriched with the period's key in the contract's partition column, and
            `hours_present`.
        accounts: How many rows each period has, from the hours' own accounts.
    """

    visits: DataFrame
    accounts: dict[str, Account]


def gather(step: Step) -> Period:
    """Read the hours of the step's periods."""
    partitioning = step.contract.partitioning
    assert partitioning is not None
    hours = {key: finer(key, partitioning.grain, Grain.HOUR) for key in step.partitions}
    published = accounts.entries(step, HOURLY, [hour for within in hours.values() for hour in within])
    whole = aligned_fan_in.completeness(step.partitions, partitioning.grain, Grain.HOUR, published)
    rows = step.read(HOURLY).where(
        (F.col("event_hour") >= hours[step.partitions[0]][0]) & (F.col("event_hour") <= hours[step.partitions[-1]][-1])
    )
    day = F.to_date(F.substring("event_hour", 1, 10))
    key = day if partitioning.grain is Grain.DAY else F.date_trunc("week", day).cast("date")
    present = F.create_map(*[F.lit(part) for key in whole for part in (key, whole[key].present)])
    keyed = rows.withColumn(partitioning.column, key.cast("string"))
    return Period(
        visits=keyed.where(F.col(partitioning.column).isin(*step.partitions)).withColumn(
            "hours_present", present[F.col(partitioning.column)]
        ),
        accounts=accounts.gathered(step, HOURLY, lambda period: hours[period]),
    )
