"""What is behind: the partitions whose input is newer than what was published from it.

Everything is read from the landing zone and the event log; no table is read and no JVM is started.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path

from assets.held import held
from assets.partitions import DAYS, HOURS
from assets.watermarks import moved
from orchestration.finality import deciding, lookback_of
from patterns.core.commit import WHOLE_TABLE, Entry
from patterns.core.events import EventLog
from patterns.core.partitions import Grain, coarser
from patterns.error_management import dynamic_late_data_integrator
from patterns.idempotency import stateful_merger
from patterns.ingestion.readiness_marker import LandedPartition, scan
from quality.contracts import CONTRACTS


def landed(landing: Path, table: str, grain: Grain) -> list[LandedPartition]:
    """Give the complete partitions of a landed table, in order."""
    return [partition for partition in _ready(landing, table, grain) if _exists(partition.key, grain)]


def misnamed(landing: Path, table: str, grain: Grain) -> list[LandedPartition]:
    """Give what is flagged as complete under a time that is none, lies in the future, or before the blog's history."""
    return [partition for partition in _ready(landing, table, grain) if not _exists(partition.key, grain)]


def _ready(landing: Path, table: str, grain: Grain) -> list[LandedPartition]:
    return [partition for partition in scan(landing / table, grain, with_times=True) if partition.ready]


def _exists(key: str, grain: Grain) -> bool:
    return (HOURS if grain is Grain.HOUR else DAYS).has_partition_key(key)


def stale_arrivals(landing: Path, events: EventLog) -> list[str]:
    """Give the hours of arrival whose landed files are not those that were published."""
    return not_published(landed(landing, "visits", Grain.HOUR), events.publications("bronze.visits"))


def stale_user_days(landing: Path, events: EventLog) -> list[str]:
    """Give the days whose delivery of users is not the one that was published."""
    return not_published(landed(landing, "users", Grain.DAY), events.publications("bronze.users"))


def devices_are_stale(landing: Path, events: EventLog) -> bool:
    """Tell whether a newer delivery of the devices has landed."""
    deliveries = landed(landing, "devices", Grain.DAY)
    if not deliveries:
        return False
    newest = max(deliveries, key=lambda delivery: delivery.key)
    entry = events.publications("bronze.devices").get(WHOLE_TABLE)
    return entry is None or entry.landed != f"{newest.key}:{newest.fingerprint}"


def stale_event_hours(events: EventLog) -> list[str]:
    """Give the event hours that have rows, or had rows, which silver.visits has not seen; late data is nothing else.

    Hours next to them, in which late rows have joined visits of a log, follow when these were published. Those that
    wait for a person are not among them (:func:`assets.held.held_hours`).
    """
    published = events.publications("silver.visits")
    arrivals = events.publications("bronze.visits")
    behind = dynamic_late_data_integrator.behind(arrivals, published, source="bronze.visits", breakdown="event_hours")
    return sorted({*behind, *outdated(published)} - set(held(events, arrivals, published)))


def event_hour_inputs(events: EventLog) -> dict[str, str]:
    """Say of each event hour what a run would find new: the same as long as nothing comes that concerns the hour."""
    published = events.publications("silver.visits")
    lines = dynamic_late_data_integrator.state(
        events.publications("bronze.visits"), published, source="bronze.visits", breakdown="event_hours"
    )
    found: dict[str, list[str]] = defaultdict(list)
    for hour, line in lines.items():
        found[hour].append(f"{line.rows} rows of version {line.updated}")
    for hour, version in outdated(published).items():
        found[hour].append(f"outdated by version {version}")
    for hour, version in late_users(events).items():
        found[hour].append(f"users of version {version}")
    return {hour: ", ".join(told) for hour, told in found.items()}


def outdated(published: Mapping[str, Entry]) -> dict[str, int]:
    """Give the event hours that the publication of another one has outdated, each with the version of that.

    What counts is what they have seen, not who was published first: an hour may have been computed for long, from what
    had arrived when that began.

    Args:
        published: Hour to its newest publication of silver.visits.
    """
    source = "bronze.visits"
    told = sorted((entry.version, key, entry.inputs[source]) for entry in published.values() for key in entry.outdates)
    return {key: version for version, key, seen in told if key in published and published[key].inputs[source] < seen}


def stale_same_hours(events: EventLog, dataset: str, above: str) -> list[str]:
    """Give the partitions whose input partition of the same key is newer than what the dataset read."""
    published = events.publications(dataset)
    return sorted(
        key for key, entry in events.publications(above).items() if _is_behind(published.get(key), above, [entry])
    )


def stale_periods(events: EventLog, dataset: str, grain: Grain) -> list[str]:
    """Give the days or weeks in which an hour of silver.visits_enriched is newer than what the dataset read.

    Final ones are not among them: those before the lookback of the newest period with rows that has ended.
    """
    above = "silver.visits_enriched"
    within: dict[str, list[Entry]] = defaultdict(list)
    for hour, entry in events.publications(above).items():
        within[coarser(hour, Grain.HOUR, grain)].append(entry)
    published = events.publications(dataset)
    behind = sorted(key for key, entries in within.items() if _is_behind(published.get(key), above, entries))
    return open_periods(dataset, behind, published, max(within, default=""))


def open_periods(dataset: str, keys: Iterable[str], published: Mapping[str, Entry], newest: str) -> list[str]:
    """Give the periods that are not final yet, or were never published.

    Args:
        dataset: Whose.
        keys: Some of its periods.
        published: Period to its newest publication.
        newest: The newest period with rows.
    """
    lookback = lookback_of(CONTRACTS[dataset])
    if lookback is None:
        return list(keys)
    execution = deciding(newest, lookback.grain)
    return [key for key in keys if key not in published or not lookback.is_final(key, execution)]


def whole_is_stale(events: EventLog, dataset: str, above: str) -> bool:
    """Tell whether any partition of the input is newer than what an unpartitioned dataset read."""
    entries = events.publications(above).values()
    return bool(entries) and _is_behind(events.publications(dataset).get(WHOLE_TABLE), above, entries)


def stale_for_users(events: EventLog) -> list[str]:
    """Give the event hours that were enriched before a delivery of users that tells of them had come."""
    return list(late_users(events))


def late_users(events: EventLog) -> dict[str, int]:
    """Give the event hours that were enriched before the newest delivery that tells of them, each with its version.

    One of their day or before does, and the first one, whose users have been there since they registered.
    """
    history = events.history("silver.users")
    made = [entry.version for entry in history]
    # A version in between, which a compaction has made, has the rows of the publication before it.
    read = [-1, *(entry.inputs.get("bronze.users", -1) for entry in history)]
    integrated = max(read)
    published = events.publications("bronze.users")
    deliveries = sorted(
        (day, entry.version)
        for day, entry in published.items()
        # What silver.users has not read yet cannot help an hour that runs again.
        if entry.version <= integrated
    )
    days = [day for day, _ in deliveries]
    first = bisect_right(days, first_delivery(published) or "")
    newest = list(accumulate((version for _, version in deliveries), max))
    stale = {}
    for hour, entry in sorted(events.publications("silver.visits_enriched").items()):
        told = max(bisect_right(days, hour[:10]), first)
        if told and newest[told - 1] > read[bisect_right(made, entry.inputs.get("silver.users", -1))]:
            stale[hour] = newest[told - 1]
    return stale


def usable_rows(delivery: Entry) -> int:
    """Give the rows of a delivery of users or devices that are no dead letters; a day without any is no delivery."""
    return delivery.rows_out - int(delivery.measures["dead"])


def first_delivery(published: Mapping[str, Entry]) -> str | None:
    """Give the first day on which users were delivered.

    Args:
        published: Day to its newest publication of bronze.users.
    """
    return min((day for day, entry in published.items() if usable_rows(entry)), default=None)


def stale_late_hours(events: EventLog) -> dict[str, str]:
    """Give the hours of arrival whose watermark has moved since their late rows were captured, with the new ones."""
    return moved(events.publications("bronze.visits"), events.publications("silver.late_visits"))


def stale_executions(events: EventLog) -> list[str]:
    """Give the days whose delivery of users is newer than what was merged, or was taken from the table since."""
    dataset = "silver.users_current"
    gone = stateful_merger.undone(events.executions(dataset))
    return sorted({*stale_same_hours(events, dataset, "bronze.users"), *gone})


def _is_behind(published: Entry | None, above: str, entries: Iterable[Entry]) -> bool:
    return published is None or any(entry.version > published.inputs.get(above, -1) for entry in entries)


def not_published(ready: Sequence[LandedPartition], published: Mapping[str, Entry]) -> list[str]:
    """Give the landed partitions whose files are not those that were published."""
    return [
        partition.key
        for partition in ready
        if partition.key not in published or published[partition.key].landed != partition.fingerprint
    ]
