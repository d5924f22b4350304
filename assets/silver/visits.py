"""silver.visits: every visit event once, in the hour it happened; and what lost to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from assets import bronze
from assets.partitions import HOURS
from assets.policy import blog_dataset, newly_updated
from assets.silver.log_visits import log_events
from assets.transforms import visit_events
from orchestration import accounts
from orchestration.step import Step
from patterns.core.commit import Account, Commit, Entry
from patterns.core.partitions import Grain, key_of, start_of
from patterns.error_management import windowed_deduplicator

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

IDENTITY = ("visit_id", "event_time", "page")
ARRIVAL_ORDER = ("arrival_hour", "source_file", "source_offset")


@blog_dataset("silver.visits", deps=[bronze.visits], partitions_def=HOURS, automation=newly_updated())
def visits(step: Step) -> Commit:
    """Compute each event hour from all of bronze, whenever its rows arrived, and replace it whole."""
    above = accounts.entries(step, "bronze.visits", since=earliest_arrival(step))
    events = read_events(step, formats_of(step, above))
    unique = windowed_deduplicator.deduplicate(
        events, key=("event_hour", *IDENTITY), order=ARRIVAL_ORDER, payload=F.xxhash64("raw")
    )
    return step.overwrite(unique, accounts=arrived(step, above))


@blog_dataset("silver.visit_conflicts", deps=[bronze.visits, visits], partitions_def=HOURS, automation=newly_updated())
def visit_conflicts(step: Step) -> Commit:
    """Keep the events that had another payload than the one that won."""
    won = accounts.entries(step, "silver.visits", step.partitions)
    duplicates = {key: int(entry.reasons["duplicates"]) for key, entry in won.items()}
    conflicts = {key: int(entry.measures["conflicts"]) for key, entry in won.items()}
    winners = step.read("silver.visits").where(F.col("event_hour").isin(*step.partitions))
    if any(conflicts.values()):
        above = accounts.entries(step, "bronze.visits", since=earliest_arrival(step))
        events = read_events(step, formats_of(step, above))
        lost = windowed_deduplicator.conflicting(
            events, winners, key=("event_hour", *IDENTITY), order=ARRIVAL_ORDER, payload=F.xxhash64("raw")
        )
    else:
        lost = winners.limit(0)
    expected = {
        key: Account(rows_in=duplicates[key], reasons={"identical": duplicates[key] - conflicts[key]}) for key in won
    }
    return step.overwrite(lost, accounts=expected)


def earliest_arrival(step: Step) -> str:
    """Give the first hour in which events of the step's hours can have arrived: clocks may run a little ahead."""
    first = start_of(step.partitions[0], Grain.HOUR)
    return key_of(first - Grain.HOUR.length, Grain.HOUR)


def formats_of(step: Step, above: Mapping[str, Entry]) -> frozenset[str]:
    """Tell which formats the step's hours hold, from the accounts: nothing is read for it."""
    wanted = set(step.partitions)
    found = {
        str(line_format)
        for entry in above.values()
        for (hour, filter_name, line_format) in entry.breakdowns["event_hours"]
        if hour in wanted and filter_name is None
    }
    return frozenset(found or {visit_events.JSON})


def read_events(step: Step, formats: frozenset[str]) -> DataFrame:
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
    if visit_events.COMBINED not in formats:
        return json_events
    logs = log_events(step, accounts.entries(step, "bronze.visits"))
    return json_events.unionByName(logs) if visit_events.JSON in formats else logs


def arrived(step: Step, above: Mapping[str, Entry]) -> dict[str, Account]:
    """Give what arrived for each of the step's hours, and what the filters of bronze removed of it."""
    rows = dict.fromkeys(step.partitions, 0)
    filtered: dict[str, dict[str, int]] = {key: {} for key in step.partitions}
    for entry in above.values():
        for (hour, filter_name, _), count in entry.breakdowns["event_hours"].items():
            if hour not in rows:
                continue
            rows[hour] += count
            if filter_name is not None:
                reason = f"filtered.{filter_name}"
                filtered[hour][reason] = filtered[hour].get(reason, 0) + count
    return {hour: Account(rows_in=rows[hour], reasons=filtered[hour]) for hour in step.partitions}
