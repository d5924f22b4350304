"""The partitions of a deployment, as Dagster knows them."""

from __future__ import annotations

from collections.abc import Mapping

import dagster as dg

from publish.partitions import Grain, coarser

Calendar = Mapping[Grain, dg.TimeWindowPartitionsDefinition]
"""Partitions by their length."""


def calendar(first_day: str) -> Calendar:
    """Make the partitions of a deployment.

    Args:
        first_day: Day on which its history begins; weeks begin with the Monday of it or before.
    """
    monday = coarser(first_day, Grain.DAY, Grain.WEEK)
    # One partition beyond the last full one: what has arrived of the running hour, day and week can be looked at.
    return {
        Grain.HOUR: dg.HourlyPartitionsDefinition(
            start_date=f"{first_day}T00", fmt=Grain.HOUR.key_format, end_offset=1
        ),
        Grain.DAY: dg.DailyPartitionsDefinition(start_date=first_day, fmt=Grain.DAY.key_format, end_offset=1),
        Grain.WEEK: dg.WeeklyPartitionsDefinition(
            start_date=monday, fmt=Grain.WEEK.key_format, day_offset=1, end_offset=1
        ),
    }
