"""Visits of a table: how its rows become lines, and which events they delete.

Decisions: a row that is marked as deleted is a line that the filter `deleted` removes, and deletes the event with its
identity, whichever way that came, unless a row of the event came after it. Rows whose time of ingestion is null or
still to come are dead letters, `missing_field:ingestion_time` or `impossible_time:ingestion_time`; a row whose time has
come is an event then, too.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

PREFIX = "legacy_visits"
DELETED = "deleted"
"""Name of the filter that removes rows marked as deleted, and the events that they delete."""
DELTA = "ingestion_time"
KEY = ("visit_id", "event_time", "page")


def left(events: DataFrame, deletions: DataFrame, order: Sequence[str]) -> DataFrame:
    """Add `_deleted` BOOLEAN: no row of the event came after the last row that deletes it."""
    came: Column = F.struct(*order)
    gone = deletions.groupBy(*KEY).agg(F.max(came).alias("_gone"))
    last = F.max(came).over(Window.partitionBy(*KEY))
    joined = events.join(gone, list(KEY), "left").withColumn("_last", last)
    deleted = F.coalesce(F.col("_gone") > F.col("_last"), F.lit(False))
    return joined.withColumn("_deleted", deleted).drop("_gone", "_last")
