"""Gives the page views of access logs their visits, which may reach into earlier and later hours."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from assets.transforms import access_logs, visit_events
from orchestration.step import Step
from patterns.core.commit import Entry
from patterns.core.partitions import Grain, key_of, start_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

FIRST_LOOK = 6
"""Hours to look back and ahead at first; doubled until no visit can reach further."""
VISITOR_KEY = "visitor.key"


def log_events(step: Step, above: Mapping[str, Entry]) -> DataFrame:
    """Read the page views of the step's hours from access logs, with the visit each belongs to.

    Args:
        step: The step.
        above: The accounts of all of bronze.visits.

    Returns:
        The columns of :data:`assets.transforms.visit_events.PARSED`.
    """
    key = step.secrets.read(VISITOR_KEY)
    first, last = (start_of(step.partitions[at], Grain.HOUR) for at in (0, -1))
    ours = F.col("event_hour").isin(*step.partitions)
    target = visit_events.parse(_rows(step).where(ours), COMBINED, key)
    known = _hours(above)
    look = FIRST_LOOK * Grain.HOUR.length
    while True:
        since, until = first - look, last + Grain.HOUR.length + look
        around = visit_events.parse(_rows(step).where(~ours & _between(since, until)), COMBINED, key)
        # Beyond the oldest and the newest page view no visit can reach.
        edges = (since if known and known[0] < since else None, until if known and known[-1] >= until else None)
        if not access_logs.touches_edge(target, around, *edges):
            return access_logs.with_visit_ids(target, around, key)
        look *= 2


COMBINED = frozenset({visit_events.COMBINED})


def _rows(step: Step) -> DataFrame:
    return step.read("bronze.visits").where((F.col("format") == visit_events.COMBINED) & F.col("filtered_by").isNull())


def _between(since: datetime, until: datetime) -> Column:
    return (F.col("event_hour") >= key_of(since, Grain.HOUR)) & (F.col("event_hour") < key_of(until, Grain.HOUR))


def _hours(above: Mapping[str, Entry]) -> list[datetime]:
    """The hours there are page views of, in order."""
    hours = {
        hour
        for entry in above.values()
        for (hour, filter_name, line_format) in entry.breakdowns["event_hours"]
        if hour is not None and filter_name is None and line_format == visit_events.COMBINED
    }
    return [start_of(hour, Grain.HOUR) for hour in sorted(hours)]
