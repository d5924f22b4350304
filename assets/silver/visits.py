"""silver.visits: every visit event once, in the hour it happened; conflicting duplicates in a companion table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyspark.sql import functions as F

from assets.silver.arrival_hours import earliest_arrival, require_usable
from assets.silver.log_visits import Events, log_events
from assets.transforms import visit_events
from blogdata.lake.commit import Account, Commit, Entry
from blogdata.orchestration import accounts
from blogdata.orchestration.computation import computes
from blogdata.orchestration.step import Step, Upstream
from blogdata.patterns.error_management import filter_interceptor, windowed_deduplicator
from blogdata.patterns.ingestion.landed_lines import is_replay
from blogdata.publish.partitions import Grain, following
from blogdata.publish.target import Companion
from quality.contracts import CONTRACTS

IDENTITY = ("visit_id", "event_time", "page")
# A correction lies in the hour of the line it corrects, but arrived later: `_replay` sorts it last in its hour.
ARRIVAL_ORDER = ("arrival_hour", "_replay", "source_file", "source_offset")


@computes("silver.visits")
def visits(step: Step) -> Mapping[str, Commit]:
    """Compute each event hour from all of bronze, whenever its rows arrived, and replace it whole.

    Duplicates with another payload than the kept event are published with it, in the companion table.
    """
    above = accounts.entries(step, "bronze.visits", since=earliest_arrival(step))
    integrated = step.events.publications(step.contract.dataset, step.partitions)
    require_usable(step)
    read = read_events(step, formats_of(step, above, integrated))
    events = read.rows.withColumn("_replay", is_replay())
    identity = {"key": ("event_hour", *IDENTITY), "order": ARRIVAL_ORDER}
    payload = F.xxhash64("raw")
    conflicts = Companion(
        contract=CONTRACTS["silver.visit_conflicts"],
        frame=windowed_deduplicator.conflicting(events, payload=payload, **identity),
        counted_measure="reason.duplicates",
        kept_measure="conflicts",
        dropped_reason="identical",
    )
    unique = windowed_deduplicator.deduplicate(events, payload=payload, **identity)
    return step.publish(unique, Upstream(accounts=arrived(step, above, read.makes_stale)), companions=[conflicts])


def formats_of(step: Step, above: Mapping[str, Entry], integrated: Mapping[str, Entry]) -> frozenset[str]:
    """Find the formats of the step's hours from the accounts, without reading rows.

    The hour after each published hour counts too: an hour that runs again may have lost its last page view, from which
    a visit of the next hour took its id.
    """
    next_hours = {following(hour, Grain.HOUR) for hour in integrated}
    wanted = {*step.partitions, *next_hours}
    found = {
        str(line_format)
        for entry in above.values()
        for (hour, filter_name, line_format) in entry.breakdowns["event_hours"]
        if hour in wanted and filter_name is None
    }
    return frozenset(found or {visit_events.JSON})


def read_events(step: Step, formats: frozenset[str]) -> Events:
    """Read the visit events of the step's hours from bronze, with their typed columns."""
    json_events = visit_events.parse(
        step.read("bronze.visits").where(
            (F.col("arrival_hour") >= earliest_arrival(step))
            & F.col("event_hour").isin(*step.partitions)
            & F.col("filtered_by").isNull()
            & (F.col("format") == visit_events.JSON)
        ),
        frozenset({visit_events.JSON}),
    )
    if not formats & visit_events.LOGS:
        return Events(rows=json_events, makes_stale={})
    logs = log_events(step, accounts.entries(step, "bronze.visits"))
    return replace(logs, rows=json_events.unionByName(logs.rows)) if visit_events.JSON in formats else logs


def arrived(step: Step, above: Mapping[str, Entry], makes_stale: Mapping[str, Sequence[str]]) -> dict[str, Account]:
    """Build the account of each of the step's hours: rows that arrived, and rows that bronze's filters removed."""
    rows = dict.fromkeys(step.partitions, 0)
    filtered: dict[str, dict[str, int]] = {key: {} for key in step.partitions}
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
