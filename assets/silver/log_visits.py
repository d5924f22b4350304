"""Assigns the page views of access logs to visits, which may reach into earlier and later hours."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from assets.silver.arrival_hours import requests
from assets.transforms import visit_lines, visits_by_inactivity
from blogdata.lake.commit import Entry
from blogdata.orchestration.step import Step
from blogdata.patterns.security.pseudo_anonymizer import token
from blogdata.publish.partitions import Grain, key_of, start_of
from quality.contracts.keys import VISITOR_KEY

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

FIRST_LOOK = 6
"""Hours to look back and ahead at first; doubled until no visit can reach further."""


@dataclass(frozen=True, kw_only=True)
class Events:
    """The events of a step's hours, and for each hour the other ones whose visits they joined or split."""

    rows: DataFrame
    makes_stale: Mapping[str, list[str]]


def log_events(step: Step, above: Mapping[str, Entry]) -> Events:
    """Read the page views of the step's hours from access logs, and the hours whose visits they joined or split."""
    key = step.token_key(VISITOR_KEY)
    first, last = (start_of(step.partitions[at], Grain.HOUR) for at in (0, -1))
    ours = F.col("event_hour").isin(*step.partitions)
    target = _page_views(step, key, ours)
    arrivals = _arrivals(above)
    known = [start_of(hour, Grain.HOUR) for hour in sorted(arrivals)]
    look = FIRST_LOOK * Grain.HOUR.length
    while True:
        since, until = first - look, last + Grain.HOUR.length + look
        around = _page_views(step, key, ~ours & _between(since, until))
        # No visit reaches beyond the oldest or the newest page view.
        edges = (since if known and known[0] < since else None, until if known and known[-1] >= until else None)
        if not visits_by_inactivity.touches_edge(target, around, *edges):
            break
        look *= 2
    first_key, end_key = key_of(since, Grain.HOUR), key_of(until, Grain.HOUR)
    nearby = {hour for hour in arrivals if first_key <= hour < end_key} - set(step.partitions)
    integrated = step.events.publications(step.contract.dataset, since=first_key, until=end_key)
    changed = _behind(above, {hour: arrivals[hour] for hour in nearby}, integrated)
    others = _could_change(step, arrivals, sorted(nearby & integrated.keys()))
    if others:
        published = step.lake.read(step.spark, step.contract.dataset).where(F.col("event_hour").isin(*others))
        changed.update(visits_by_inactivity.rejoined(published, target, around, key, *edges))
    makes_stale: dict[str, list[str]] = {}
    for hour in sorted(changed):
        makes_stale.setdefault(_nearest(step, hour), []).append(hour)
    return Events(rows=visits_by_inactivity.with_visit_ids(target, around, key), makes_stale=makes_stale)


def _page_views(step: Step, key: str, which: Column) -> DataFrame:
    """Read page views from access logs; `visit_id` is null until the rows around are known."""
    user = token(F.concat_ws(" ", "client", "agent"), key, "user_id")
    return requests(step, which & F.col("filtered_by").isNull()).withColumn("user_id", user)


def _between(since: datetime, until: datetime) -> Column:
    return (F.col("event_hour") >= key_of(since, Grain.HOUR)) & (F.col("event_hour") < key_of(until, Grain.HOUR))


def _arrivals(above: Mapping[str, Entry]) -> dict[str, set[str]]:
    """Map each event hour with page views to the hours in which they arrived."""
    arrivals: dict[str, set[str]] = {}
    for arrival, entry in above.items():
        for hour, filter_name, line_format in entry.breakdowns["event_hours"]:
            if hour is not None and filter_name is None and line_format != visit_lines.JSON:
                arrivals.setdefault(hour, set()).add(arrival)
    return arrivals


def _could_change(step: Step, arrivals: Mapping[str, set[str]], others: list[str]) -> list[str]:
    """List the published hours around, in order, whose visits the step's rows may have joined or split.

    There are none while logs arrive in time order: the newest rows only extend visits and never join two.
    """
    if not others:
        return []
    came = {arrival for hour in step.partitions for arrival in arrivals.get(hour, ())}
    before = {arrival for hour in others for arrival in arrivals[hour]}
    in_order = others[-1] < step.partitions[0] and came and min(came) > max(before)
    return [] if in_order else others


def _behind(above: Mapping[str, Entry], arrivals: Mapping[str, set[str]], integrated: Mapping[str, Entry]) -> set[str]:
    """Find the hours whose publication has not read everything that arrived for them.

    Another run may be computing them from less data than this step has read, and publish them after it. Then they must
    run again. An hour that has read as much is not listed.
    """
    seen = {hour: entry.inputs["bronze.visits"] for hour, entry in integrated.items()}
    came = {hour: max(above[arrival].version for arrival in arrived) for hour, arrived in arrivals.items()}
    return {hour for hour, version in came.items() if seen.get(hour, -1) < version}


def _nearest(step: Step, hour: str) -> str:
    """Return the step's hour nearest to another hour.

    A visit that reaches from any hour of the step to the other hour also spans the nearest one.
    """
    at = bisect_left(step.partitions, hour)
    earlier, later = step.partitions[max(at - 1, 0)], step.partitions[min(at, len(step.partitions) - 1)]
    instant = start_of(hour, Grain.HOUR)
    return min((earlier, later), key=lambda key: abs(start_of(key, Grain.HOUR) - instant))
