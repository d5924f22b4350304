"""Visit events that rows of a table delete: they are left out of their hours, and counted."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from assets.transforms import legacy_visits, visit_events
from blogdata.lake.commit import Entry
from blogdata.orchestration.step import Step
from blogdata.patterns.ingestion.landed_lines import is_replay


@dataclass(frozen=True, kw_only=True)
class Left:
    """The events that are left, and how many rows of events were deleted in each hour."""

    rows: DataFrame
    deleted: Mapping[str, int]


def hours_with_deletions(step: Step, above: Mapping[str, Entry]) -> frozenset[str]:
    """Find the step's hours of which a row deletes an event, from the accounts, without reading rows."""
    return frozenset(
        hour
        for entry in above.values()
        for hour, filter_name, _ in entry.breakdowns["event_hours"]
        if filter_name == legacy_visits.DELETED and hour in step.partitions
    )


def left(step: Step, events: DataFrame, hours: Collection[str], order: Sequence[str]) -> Left:
    """Leave out the deleted events of some hours.

    Args:
        hours: The hours with deletions; none: nothing is read.
    """
    if not hours:
        return Left(rows=events, deleted={})
    rows = step.read("bronze.visits").where(
        F.col("event_hour").isin(*hours) & (F.col("filtered_by") == legacy_visits.DELETED)
    )
    deletions = visit_events.parse(
        rows.withColumn("filtered_by", F.lit(None).cast("string")), frozenset({visit_events.JSON})
    ).withColumn("_replay", is_replay())
    marked = legacy_visits.left(events, deletions, order)
    counts = marked.where("_deleted").groupBy("event_hour").count().collect()
    return Left(rows=marked.where("NOT _deleted").drop("_deleted"), deleted={row[0]: row[1] for row in counts})
