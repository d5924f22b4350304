"""Gives the page views of access logs their visits, which may have begun in earlier hours."""

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
    from pyspark.sql import DataFrame

FIRST_LOOK = 6
"""Hours to look back at first; doubled until no visit can have begun earlier."""
VISITOR_KEY = "visitor.key"


def log_events(step: Step, above: Mapping[str, Entry]) -> DataFrame:
    """Read the page views of the step's hours from access logs, with the visit each belongs to.

    Args:
        step: The step.
        above: The accounts of bronze.visits that reach as far back as there is data.

    Returns:
        The columns of :data:`assets.transforms.visit_events.PARSED`.
    """
    key = step.secrets.read(VISITOR_KEY)
    first = start_of(step.partitions[0], Grain.HOUR)
    target = visit_events.parse(_rows(step).where(F.col("event_hour").isin(*step.partitions)), COMBINED, key)
    oldest = _oldest(above)
    hours = FIRST_LOOK
    while True:
        edge = first - hours * Grain.HOUR.length
        lookback = visit_events.parse(_rows(step, edge, first), COMBINED, key)
        # Before the oldest page view nothing can have begun.
        if oldest is None or edge <= oldest or not access_logs.touches_edge(target, lookback, edge):
            return access_logs.with_visit_ids(target, lookback, key)
        hours *= 2


COMBINED = frozenset({visit_events.COMBINED})


def _rows(step: Step, since: datetime | None = None, until: datetime | None = None) -> DataFrame:
    rows = step.read("bronze.visits").where((F.col("format") == visit_events.COMBINED) & F.col("filtered_by").isNull())
    if since is not None and until is not None:
        first, end = key_of(since, Grain.HOUR), key_of(until, Grain.HOUR)
        rows = rows.where((F.col("event_hour") >= first) & (F.col("event_hour") < end))
    return rows


def _oldest(above: Mapping[str, Entry]) -> datetime | None:
    hours = [
        hour
        for entry in above.values()
        for (hour, filter_name, line_format) in entry.breakdowns["event_hours"]
        if hour is not None and filter_name is None and line_format == visit_events.COMBINED
    ]
    return start_of(min(hours), Grain.HOUR) if hours else None
