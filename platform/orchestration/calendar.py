"""Defines the Dagster partitions of a deployment."""

from __future__ import annotations

from collections.abc import Mapping

import dagster as dg

from publish.partitions import Grain, coarser

Calendar = Mapping[Grain, dg.TimeWindowPartitionsDefinition]
"""Partition definitions by grain."""


def calendar(first_day: str) -> Calendar:
    """Build the partition definitions of a deployment.

    Args:
        first_day: First day of its history; weeks start on the Monday on or before it.
    """
    monday = coarser(first_day, Grain.DAY, Grain.WEEK)
    # One partition beyond the last full one, so that the current hour, day and week can be materialized early.
    return {
        Grain.HOUR: dg.HourlyPartitionsDefinition(
            start_date=f"{first_day}T00", fmt=Grain.HOUR.key_format, end_offset=1
        ),
        Grain.DAY: dg.DailyPartitionsDefinition(start_date=first_day, fmt=Grain.DAY.key_format, end_offset=1),
        Grain.WEEK: dg.WeeklyPartitionsDefinition(
            start_date=monday, fmt=Grain.WEEK.key_format, day_offset=1, end_offset=1
        ),
    }
