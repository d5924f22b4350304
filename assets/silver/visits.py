"""silver.visits: every visit event once, in the hour it happened, with conflicting duplicates in a companion table.

silver.late_visits: visit events that arrived behind the watermark.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from assets.bronze import legacy_visits, visit_lines
from assets.bronze.legacy_visits import DELETED
from assets.silver.arrival_hours import ARRIVAL_ORDER, earliest_arrival, require_usable
from assets.silver.log_visits import log_events
from blogdata.contract.partitions import Grain, following
from blogdata.contract.publication import Account, Commit, Entry
from blogdata.landing.lines import is_replay
from blogdata.patterns.error_management import filter_interceptor, late_data_detector, windowed_deduplicator
from blogdata.runs import accounts, slices
from blogdata.runs.computation import computes
from blogdata.runs.step import Step, Upstream
from blogdata.table.target import Additions, Companion
from quality.contracts import CONTRACTS
from quality.contracts.visits import WATERMARK


def hours_with_deletions(step: Step, above: Mapping[str, Entry]) -> frozenset[str]:
    """Find the step's hours of which a row deletes an event, from the accounts, without reading rows."""
    return frozenset(
        hour
        for entry in above.values()
        for hour, filter_name, _ in entry.breakdowns["event_hours"]
        if filter_name == legacy_visits.DELETED and hour in step.partitions
    )


def without_deleted(step: Step, events: DataFrame, hours: Collection[str]) -> tuple[DataFrame, Mapping[str, int]]:
    """Leave out the deleted events of the hours with deletions; returns the others, and hour to the rows left out."""
    if not hours:
        return events, {}
    deletions = step.read("bronze.visits").where(
        F.col("event_hour").isin(*hours) & (F.col("filtered_by") == legacy_visits.DELETED)
    )
    marked = legacy_visits.left(events, deletions.withColumn("_replay", is_replay()), ARRIVAL_ORDER)
    counts = marked.where("_deleted").groupBy("event_hour").count().collect()
    return marked.where("NOT _deleted").drop("_deleted"), {row[0]: row[1] for row in counts}


IDENTITY = ("visit_id", "event_time", "page")
CONFLICTS = CONTRACTS["silver.visit_conflicts"]


@computes("silver.visits")
def visits(step: Step) -> Mapping[str, Commit]:
    """Compute each event hour from all of bronze, whenever its rows arrived; conflicts are published with it.

    An hour is replaced whole, unless it lacks only rows of later arrivals without duplicates: these are added. The
    first arrival wins, so they change no published row.
    """
    above = accounts.entries(step, "bronze.visits", since=earliest_arrival(step.partitions))
    integrated = step.events.publications(step.contract.dataset, step.partitions)
    require_usable(step)
    formats = formats_of(step, above, integrated)
    deleting = hours_with_deletions(step, above)
    additions = additions_of(step, formats, deleting)
    read, makes_stale = read_events(step, formats, additions)
    events, deleted = without_deleted(step, read.withColumn("_replay", is_replay()), deleting)
    identity = {"key": ("event_hour", *IDENTITY), "order": ARRIVAL_ORDER}
    payload = F.xxhash64("raw")
    conflicts = Companion(
        contract=CONFLICTS,
        frame=slices.with_published(
            step, additions, CONFLICTS, windowed_deduplicator.conflicting(events, payload=payload, **identity)
        ),
        counted_measure="reason.duplicates",
        kept_measure="conflicts",
        dropped_reason="identical",
    )
    unique = windowed_deduplicator.deduplicate(events, payload=payload, **identity)
    source = Upstream(accounts=arrived(step, above, makes_stale, deleted), additions=additions)
    return step.publish(unique, source, companions=[conflicts])


def additions_of(step: Step, formats: frozenset[str], deleting: Collection[str]) -> Additions:
    """Find the hours to which rows are only added; a late line of a log may change the visits of other lines."""
    if formats != {visit_lines.JSON}:
        return Additions()
    additions = slices.additions(step, [CONFLICTS]).without(deleting)
    if not additions.of:
        return additions
    additions = slices.without_repeated(step, additions, json_events(step, additions, tuple(additions.of)))
    # Readers must learn that the own delivery of an hour has come, even if it only repeats rows.
    return additions.without({hour for hour, added in additions.again.items() if hour in added.slices})


def formats_of(step: Step, above: Mapping[str, Entry], integrated: Mapping[str, Entry]) -> frozenset[str]:
    """Find the formats of the step's hours, and of the hour after each published one, from the accounts.

    An hour that runs again may have lost its last page view, from which a visit of the next hour took its id.
    """
    next_hours = {following(hour, Grain.HOUR) for hour in integrated}
    wanted = {*step.partitions, *next_hours}
    formats = {
        str(line_format)
        for entry in above.values()
        for (hour, filter_name, line_format) in entry.breakdowns["event_hours"]
        if hour in wanted and filter_name is None
    }
    return frozenset(formats or {visit_lines.JSON})


def read_events(
    step: Step, formats: frozenset[str], additions: Additions
) -> tuple[DataFrame, Mapping[str, Sequence[str]]]:
    """Read the visit events of the step's hours, of some only what is added; and the hours that these make stale."""
    of_json = json_events(step, additions, step.partitions)
    if formats == {visit_lines.JSON}:
        return of_json, {}
    logs, makes_stale = log_events(step, accounts.entries(step, "bronze.visits"))
    if visit_lines.JSON not in formats:
        return logs, makes_stale
    return of_json.unionByName(logs.select(*of_json.columns)), makes_stale


def json_events(step: Step, additions: Additions, hours: Sequence[str]) -> DataFrame:
    """Read the JSON events of some hours, from the hours of their arrival; of those that are added to, the new ones."""
    came = {hour for added in additions.of.values() for hour in added.slices}
    whole = [hour for hour in hours if hour not in additions.of]
    later = accounts.entries(step, "bronze.visits", since=earliest_arrival(whole)) if whole else {}
    return step.read("bronze.visits", sorted({*came, *later})).where(
        slices.rows_to_read(additions, step.contract, hours)
        & F.col("filtered_by").isNull()
        & (F.size("reasons") == 0)
        & (F.col("format") == visit_lines.JSON)
    )


def arrived(
    step: Step, above: Mapping[str, Entry], makes_stale: Mapping[str, Sequence[str]], deleted: Mapping[str, int]
) -> dict[str, Account]:
    """Build the account of each of the step's hours: rows that arrived, and rows that filters removed."""
    rows = dict.fromkeys(step.partitions, 0)
    removed = f"{filter_interceptor.REASON}{DELETED}"
    filtered = {key: {removed: deleted[key]} if key in deleted else {} for key in step.partitions}
    for entry in above.values():
        for (hour, filter_name, _), count in entry.breakdowns["event_hours"].items():
            if hour not in rows:
                continue
            rows[hour] += count
            if filter_name is not None:
                reason = f"{filter_interceptor.REASON}{filter_name}"
                filtered[hour][reason] = filtered[hour].get(reason, 0) + count
    return {
        hour: Account(rows_in=rows[hour], reasons=filtered[hour], makes_stale=makes_stale.get(hour, ()))
        for hour in step.partitions
    }


@computes("silver.late_visits")
def late_visits(step: Step) -> Mapping[str, Commit]:
    """Compare every event with the watermark that held when its hour of arrival began."""
    history = accounts.entries(step, "bronze.visits", until=step.partitions[-1] + "~")
    marks = WATERMARK.watermarks(history, step.partitions)
    events = step.read("bronze.visits", step.partitions).where("event_time IS NOT NULL AND filtered_by IS NULL")
    late = late_data_detector.late(events, marks, partition="arrival_hour", event_time="event_time")
    # Count the rows that are not late independently, so that the account does not prove itself.
    arrived = {row["arrival_hour"]: row["on_time"] for row in _on_time(events, marks).collect()}
    on_time = {key: int(arrived.get(key, 0)) for key in step.partitions}
    expected = {
        key: Account(
            rows_in=int(history[key].measures["visits"]) if key in history else 0, reasons={"on_time": on_time[key]}
        )
        for key in step.partitions
    }
    # Earlier hours determine the watermark: when it moves, the hour runs again.
    return step.publish(late, Upstream(accounts=expected, landed=WATERMARK.marks(history, step.partitions)))


def _on_time(events: DataFrame, marks: Mapping[str, datetime | None]) -> DataFrame:
    table = events.sparkSession.createDataFrame(list(marks.items()), "arrival_hour STRING, _mark TIMESTAMP")
    in_time = F.coalesce(F.col("event_time") >= F.col("_mark"), F.lit(True))
    joined = events.join(F.broadcast(table), "arrival_hour", "left")
    return joined.groupBy("arrival_hour").agg(F.count_if(in_time).alias("on_time"))
