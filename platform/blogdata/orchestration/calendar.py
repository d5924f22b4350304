"""Defines the Dagster partitions of a deployment."""

from __future__ import annotations

from collections.abc import Mapping

import dagster as dg

from blogdata.publish.partitions import Grain, coarser, following

Calendar = Mapping[Grain, dg.TimeWindowPartitionsDefinition]
"""Partition definitions by grain."""


def calendar(first_day: str, last_day: str | None = None) -> Calendar:
    """Build the partition definitions of a deployment.

    Args:
        last_day: Last day of it, of which no later hour is shown than the current one; None: there is a partition for
            each hour, day and week until now.
    """
    monday = coarser(first_day, Grain.DAY, Grain.WEEK)
    end = following(last_day, Grain.DAY) if last_day else None
    week_end = following(coarser(last_day, Grain.DAY, Grain.WEEK), Grain.WEEK) if last_day else None
    # One partition beyond the last full one, so that the current hour, day and week can be materialized early.
    return {
        Grain.HOUR: dg.HourlyPartitionsDefinition(
            start_date=f"{first_day}T00",
            end_date=end and f"{end}T00",
            fmt=Grain.HOUR.key_format,
            end_offset=1,
        ),
        Grain.DAY: dg.DailyPartitionsDefinition(
            start_date=first_day, end_date=end, fmt=Grain.DAY.key_format, end_offset=1
        ),
        Grain.WEEK: dg.WeeklyPartitionsDefinition(
            start_date=monday, end_date=week_end, fmt=Grain.WEEK.key_format, day_offset=1, end_offset=1
        ),
    }
