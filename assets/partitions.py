"""The time partitions of the blog's datasets and how they depend on each other."""

from __future__ import annotations

import dagster as dg

from patterns.core.partitions import Grain

FIRST_DAY = "2000-01-01"
"""Partitions begin here: an event that claims an earlier time is rejected, so every kept event has its partition."""

# One partition beyond the last full one: what has arrived of the running hour, day and week can be looked at.
HOURS = dg.HourlyPartitionsDefinition(start_date=f"{FIRST_DAY}T00", fmt=Grain.HOUR.key_format, end_offset=1)
DAYS = dg.DailyPartitionsDefinition(start_date=FIRST_DAY, fmt=Grain.DAY.key_format, end_offset=1)
WEEKS = dg.WeeklyPartitionsDefinition(start_date="1999-12-27", fmt=Grain.WEEK.key_format, day_offset=1, end_offset=1)


def within_period(asset: dg.AssetsDefinition) -> dg.AssetDep:
    """Depend on the partitions within one's own, shorter or equal (Aligned Fan-In)."""
    return dg.AssetDep(asset, partition_mapping=dg.TimeWindowPartitionMapping())
