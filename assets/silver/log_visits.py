"""Assigns the page views of access logs to visits: a visit ends after more than 30 minutes of inactivity.

`visit_id` is a keyed hash of `user_id` and the position of the visit's first appended line (Keyed Idempotency): a late
line, whatever its time, changes no id. The exception is a line that joins two visits: the visit appended later changes
its id, and :func:`rejoined` finds the hours it is in. A visit may reach into other hours: :func:`with_visit_ids` takes
the rows around the target, and :func:`touches_edge` checks whether they suffice.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from assets.bronze import visit_lines
from assets.silver.arrival_hours import requests
from blogdata.contract.partitions import Grain, key_of, start_of
from blogdata.contract.publication import Entry
from blogdata.landing.lines import REPLAY_PREFIX, is_replay
from blogdata.landing.log_splitter import PART
from blogdata.patterns.idempotency import keyed_idempotency
from blogdata.patterns.security.pseudo_anonymizer import token
from blogdata.runs.step import Step
from quality.keys import VISITOR_KEY
from quality.session_timeout import INACTIVITY

POSITION = ("arrival_hour", "source_file", "source_offset")


def with_visit_ids(target: DataFrame, around: DataFrame, key: str) -> DataFrame:
    """Fill the visit ids of the target, rows of :mod:`assets.bronze.request_lines` in whole hours.

    `around` has earlier and later rows. Unless :func:`touches_edge`, the ids equal those computed over all rows.
    """
    visits = _keyed(_visits(target, around, target.columns), key)
    return visits.where("_ours").select(*target.columns)


def rejoined(
    published: DataFrame, target: DataFrame, around: DataFrame, key: str, since: datetime | None, until: datetime | None
) -> list[str]:
    """Find the hours, in order, with page views published under another visit id than they have now (an action).

    Visits that may reach beyond the rows around are not compared. Arguments as in :func:`touches_edge`.
    """
    visits = _keyed(_visits(target, around, [*_WHEN, *POSITION]), key)
    whole = Window.partitionBy(*_VISIT)
    if since is not None:
        visits = visits.withColumn("_began", F.min("event_time").over(whole)).where(
            F.col("_began") >= since + INACTIVITY
        )
    if until is not None:
        visits = visits.withColumn("_ended", F.max("event_time").over(whole)).where(
            F.col("_ended") < until - INACTIVITY
        )
    now = visits.where("NOT _ours").select(*_WHEN, F.col("visit_id").alias("_now")).distinct()
    others = published.join(now, [*_WHEN]).where(F.col("visit_id") != F.col("_now"))
    return sorted(row[0] for row in others.select("event_hour").distinct().collect())


def touches_edge(target: DataFrame, around: DataFrame, since: datetime | None, until: datetime | None) -> bool:
    """Return whether a row outside could join a visit of the target: widen `around` and check again (an action).

    `since` is the first instant that `around` covers, `until` the first that it no longer covers, timezone-aware; None
    if there are no earlier or later rows.
    """
    if since is None and until is None:
        return False
    began, ended = F.min("event_time"), F.max("event_time")
    before = F.lit(False) if since is None else began < F.lit(since + INACTIVITY)
    after = F.lit(False) if until is None else ended >= F.lit(until - INACTIVITY)
    visits = _visits(target, around, [*_WHEN, *POSITION]).groupBy(*_VISIT)
    reaching = visits.agg(F.bool_or("_ours").alias("_ours"), (before | after).alias("_reaches"))
    return bool(reaching.where("_ours AND _reaches").limit(1).collect())


def position() -> Column:
    """Build the position of a log line in the order in which lines were appended; it never changes.

    The name of a log part tells when it was taken and its offset, so the position does not depend on how the log was
    split. Other files use their hour of arrival. Corrections come last, each at one position whatever its name.
    """
    file = F.regexp_replace("source_file", rf"/({REPLAY_PREFIX}[0-9a-f]{{16}})-[0-9a-f]{{16}}\.log$", r"/$1.log")
    part = [F.regexp_extract("source_file", PART, group) for group in (1, 2, 3)]
    is_part = part[0] != ""
    return F.struct(
        is_replay().alias("corrects"),
        F.when(is_part, part[1]).otherwise(F.col("arrival_hour")).alias("appended"),
        F.when(is_part, part[0]).otherwise(file).alias("log"),
        (F.when(is_part, part[2].try_cast("bigint")).otherwise(0) + F.col("source_offset")).alias("offset"),
    )


def sessionize(page_views: DataFrame) -> DataFrame:
    """Add `visit_start` TIMESTAMP, at which each page view's visit began, by user_id and event_time."""
    in_order = Window.partitionBy("user_id").orderBy("event_time")
    silence = F.unix_micros("event_time") - F.unix_micros(F.lag("event_time").over(in_order))
    begins = silence.isNull() | (silence > F.lit(INACTIVITY // timedelta(microseconds=1)))
    until_here = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    marked = page_views.withColumn("_begin", F.when(begins, F.col("event_time")))
    return marked.withColumn("visit_start", F.last("_begin", ignorenulls=True).over(until_here)).drop("_begin")


_WHEN = ("user_id", "event_time")
_VISIT = ("user_id", "visit_start")


def _visits(target: DataFrame, around: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Add visits and positions to all rows; the rows around keep only user, time and position."""
    ours = target.select(*columns).withColumn("_ours", F.lit(True))
    others = around.select(*_WHEN, *POSITION).withColumn("_ours", F.lit(False))
    whole = ours.unionByName(others, allowMissingColumns=True)
    return sessionize(whole.withColumn("_position", position()))


def _keyed(visits: DataFrame, key: str) -> DataFrame:
    keyed = keyed_idempotency.first_appended(visits, F.col("_position"), within=_VISIT, into="_first")
    first = F.concat_ws(" ", "_first.log", F.col("_first.offset").cast("string"), "user_id")
    return keyed.withColumn("visit_id", token(first, key, "visit_id"))


FIRST_LOOK = 6
"""Hours to look back and ahead at first; doubled until no visit can reach further."""


def log_events(step: Step, above: Mapping[str, Entry]) -> tuple[DataFrame, Mapping[str, list[str]]]:
    """Read the page views of the step's hours from access logs; and hour to others whose visits they change."""
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
        if not touches_edge(target, around, *edges):
            break
        look *= 2
    first_key, end_key = key_of(since, Grain.HOUR), key_of(until, Grain.HOUR)
    nearby = {hour for hour in arrivals if first_key <= hour < end_key} - set(step.partitions)
    integrated = step.events.publications(step.contract.dataset, since=first_key, until=end_key)
    changed = _behind(above, {hour: arrivals[hour] for hour in nearby}, integrated)
    others = _could_change(step, arrivals, sorted(nearby & integrated.keys()))
    if others:
        published = step.lake.read(step.spark, step.contract.dataset).where(F.col("event_hour").isin(*others))
        changed.update(rejoined(published, target, around, key, *edges))
    makes_stale: dict[str, list[str]] = {}
    for hour in sorted(changed):
        makes_stale.setdefault(_nearest(step, hour), []).append(hour)
    return with_visit_ids(target, around, key), makes_stale


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

    Another run may compute them from less than this step has read, and publish them after it: they must run again.
    """
    seen = {hour: entry.inputs["bronze.visits"] for hour, entry in integrated.items()}
    came = {hour: max(above[arrival].version for arrival in arrived) for hour, arrived in arrivals.items()}
    return {hour for hour, version in came.items() if seen.get(hour, -1) < version}


def _nearest(step: Step, hour: str) -> str:
    """Return the step's hour nearest to another one: a visit that reaches there from any hour of the step spans it."""
    at = bisect_left(step.partitions, hour)
    earlier, later = step.partitions[max(at - 1, 0)], step.partitions[min(at, len(step.partitions) - 1)]
    instant = start_of(hour, Grain.HOUR)
    return min((earlier, later), key=lambda key: abs(start_of(key, Grain.HOUR) - instant))
