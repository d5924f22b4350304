"""What has to run: the partitions whose input is newer than what was published from it.

The command line, the sensors and a person in the UI ask the same functions, so they never disagree. Everything
is read from the landing zone and the event log; no table is read and no JVM is started.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from assets.partitions import DAYS, HOURS
from assets.watermarks import moved
from patterns.core.commit import WHOLE_TABLE, Entry
from patterns.core.events import EventLog
from patterns.core.partitions import Grain, coarser
from patterns.error_management import dynamic_late_data_integrator
from patterns.ingestion.readiness_marker import LandedPartition, scan


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
    """Give the event hours that have rows, or had rows, which silver.visits has not seen; late data is nothing else."""
    return dynamic_late_data_integrator.behind(
        events.publications("bronze.visits"),
        events.publications("silver.visits"),
        source="bronze.visits",
        breakdown="event_hours",
    )


def stale_same_hours(events: EventLog, dataset: str, above: str) -> list[str]:
    """Give the partitions whose input partition of the same key is newer than what the dataset read."""
    published = events.publications(dataset)
    return sorted(
        key for key, entry in events.publications(above).items() if _is_behind(published.get(key), above, [entry])
    )


def stale_periods(events: EventLog, dataset: str, grain: Grain) -> list[str]:
    """Give the days or weeks in which an hour of silver.visits_enriched is newer than what the dataset read."""
    above = "silver.visits_enriched"
    within: dict[str, list[Entry]] = defaultdict(list)
    for hour, entry in events.publications(above).items():
        within[coarser(hour, Grain.HOUR, grain)].append(entry)
    published = events.publications(dataset)
    return sorted(key for key, entries in within.items() if _is_behind(published.get(key), above, entries))


def whole_is_stale(events: EventLog, dataset: str, above: str) -> bool:
    """Tell whether any partition of the input is newer than what an unpartitioned dataset read."""
    entries = events.publications(above).values()
    return bool(entries) and _is_behind(events.publications(dataset).get(WHOLE_TABLE), above, entries)


def stale_for_users(events: EventLog) -> list[str]:
    """Give the event hours that were enriched before a delivery of users that tells of them had come."""
    read = {entry.version: entry.inputs.get("bronze.users", -1) for entry in events.history("silver.users")}
    integrated = max(read.values(), default=-1)
    deliveries = sorted(
        (day, entry.version)
        for day, entry in events.publications("bronze.users").items()
        # What silver.users has not read yet cannot help an hour that runs again.
        if entry.version <= integrated
    )
    days = [day for day, _ in deliveries]
    newest = list(accumulate((version for _, version in deliveries), max))
    stale = []
    for hour, entry in sorted(events.publications("silver.visits_enriched").items()):
        told = bisect_right(days, hour[:10])
        if told and newest[told - 1] > read.get(entry.inputs.get("silver.users", -1), -1):
            stale.append(hour)
    return stale


def stale_late_hours(events: EventLog) -> list[str]:
    """Give the hours of arrival whose watermark has moved since their late rows were captured."""
    return moved(events.publications("bronze.visits"), events.publications("silver.late_visits"))


def _is_behind(published: Entry | None, above: str, entries: Iterable[Entry]) -> bool:
    return published is None or any(entry.version > published.inputs.get(above, -1) for entry in entries)


def not_published(ready: Sequence[LandedPartition], published: Mapping[str, Entry]) -> list[str]:
    """Give the landed partitions whose files are not those that were published."""
    return [
        partition.key
        for partition in ready
        if partition.key not in published or published[partition.key].landed != partition.fingerprint
    ]


def _nothing(landing: Path, events: EventLog) -> Sequence[str]:
    return []


def _published(dataset: str) -> Callable[[Path, EventLog], Sequence[str]]:
    return lambda landing, events: sorted(events.publications(dataset))


def _landed(table: str, grain: Grain) -> Callable[[Path, EventLog], Sequence[str]]:
    return lambda landing, events: [partition.key for partition in landed(landing, table, grain)]


@dataclass(frozen=True, kw_only=True)
class Phase:
    """A set of datasets that run together for the same partitions.

    Args:
        name: For people.
        datasets: What runs, in one Dagster run per gapless range.
        grain: Length of the partitions; None for tables that are written whole.
        partitions: What of it is stale, decided when the phase begins: earlier phases change it.
        known: All partitions it could run again.
    """

    name: str
    datasets: tuple[str, ...]
    grain: Grain | None
    partitions: Callable[[Path, EventLog], Sequence[str]]
    known: Callable[[Path, EventLog], Sequence[str]] = _nothing


def _users(landing: Path, events: EventLog) -> Sequence[str]:
    return [WHOLE_TABLE] if whole_is_stale(events, "silver.users", "bronze.users") else []


def _devices(landing: Path, events: EventLog) -> Sequence[str]:
    stale = devices_are_stale(landing, events) or whole_is_stale(events, "silver.devices", "bronze.devices")
    return [WHOLE_TABLE] if stale else []


def _arrivals(landing: Path, events: EventLog) -> Sequence[str]:
    stale = set(stale_arrivals(landing, events))
    for dataset in ("bronze.dead_letters", "silver.late_visits"):
        stale.update(stale_same_hours(events, dataset, "bronze.visits"))
    return sorted(stale)


def _event_hours(landing: Path, events: EventLog) -> Sequence[str]:
    stale = {*stale_event_hours(events), *stale_for_users(events)}
    for dataset in ("silver.visit_conflicts", "silver.visits_enriched"):
        stale.update(stale_same_hours(events, dataset, "silver.visits"))
    return sorted(stale)


def _days(landing: Path, events: EventLog) -> Sequence[str]:
    daily = ("gold.visits_cube_daily", "gold.page_stats", "gold.referral_stats")
    return sorted({key for dataset in daily for key in stale_periods(events, dataset, Grain.DAY)})


PHASES = (
    Phase(
        name="users delivered",
        datasets=("bronze.users",),
        grain=Grain.DAY,
        partitions=stale_user_days,
        known=_landed("users", Grain.DAY),
    ),
    Phase(
        name="users",
        datasets=("silver.users",),
        grain=None,
        partitions=_users,
        known=_published("bronze.users"),
    ),
    Phase(
        name="devices",
        datasets=("bronze.devices", "silver.devices"),
        grain=None,
        partitions=_devices,
        known=_landed("devices", Grain.DAY),
    ),
    Phase(
        name="arrivals",
        datasets=("bronze.visits", "bronze.dead_letters", "silver.late_visits"),
        grain=Grain.HOUR,
        partitions=_arrivals,
        known=_landed("visits", Grain.HOUR),
    ),
    Phase(
        name="watermarks moved",
        datasets=("silver.late_visits",),
        grain=Grain.HOUR,
        partitions=lambda landing, events: stale_late_hours(events),
    ),
    Phase(
        name="event hours",
        datasets=("silver.visits", "silver.visit_conflicts", "silver.visits_enriched"),
        grain=Grain.HOUR,
        partitions=_event_hours,
        known=_published("silver.visits"),
    ),
    Phase(
        name="days",
        datasets=("gold.visits_cube_daily", "gold.page_stats", "gold.referral_stats"),
        grain=Grain.DAY,
        partitions=_days,
        known=_published("gold.visits_cube_daily"),
    ),
    Phase(
        name="weeks",
        datasets=("gold.visits_cube_weekly",),
        grain=Grain.WEEK,
        partitions=lambda landing, events: stale_periods(events, "gold.visits_cube_weekly", Grain.WEEK),
        known=_published("gold.visits_cube_weekly"),
    ),
)
"""Everything from the landing zone to gold, in the order in which it must run."""
