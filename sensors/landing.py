"""Readiness sensors: what has landed completely starts the run that reads it, exactly once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import dagster as dg

from assets.staleness import devices_are_stale, landed, misnamed, not_published
from patterns.core.partitions import Grain
from patterns.ingestion.log_splitter import pending
from patterns.ingestion.readiness_marker import LandedPartition, late_files
from resources.lake import LakeResource
from sensors import jobs
from sensors.cursor import Seen

MOST_AT_ONCE = 24
"""Runs one tick asks for; the rest follows at the next tick, so that a large delivery does not flood the queue."""


@dg.sensor(
    job=jobs.hour_of_arrival,
    minimum_interval_seconds=15,
    description="Starts an hour when its producer has flagged it, and again when files came after the flag",
    tags={"pattern/readiness-marker": ""},
)
def hour_is_ready(context: dg.SensorEvaluationContext, lake: LakeResource) -> dg.SensorResult:
    """Ask for one run per complete hour and content."""
    seen = Seen.read(context.cursor)
    ready = landed(lake.landing_path, "visits", Grain.HOUR)
    fresh, known = _news(ready, seen, lake, "bronze.visits")
    for hour in fresh:
        if seen.knows(hour.key):
            names = ", ".join(file.name for file in late_files(hour)) or "its files changed"
            context.log.warning(f"hour {hour.key} changed after it was complete: {names}")
        if hour.empty:
            context.log.warning(f"hour {hour.key} is flagged as complete and has no data")
    strange = _report_misnamed(context, lake, "visits", Grain.HOUR, seen)
    return _requests(fresh, seen.cursor([*fresh, *known, *strange], ready))


@dg.sensor(
    job=jobs.users_of_a_day,
    minimum_interval_seconds=30,
    description="Starts the load of a day's users when the delivery is complete",
    tags={"pattern/readiness-marker": ""},
)
def users_landed(context: dg.SensorEvaluationContext, lake: LakeResource) -> dg.SensorResult:
    """Ask for one run per complete delivery and content."""
    seen = Seen.read(context.cursor)
    ready = landed(lake.landing_path, "users", Grain.DAY)
    fresh, known = _news(ready, seen, lake, "bronze.users")
    strange = _report_misnamed(context, lake, "users", Grain.DAY, seen)
    return _requests(fresh, seen.cursor([*fresh, *known, *strange], ready))


@dg.sensor(
    job=jobs.devices,
    minimum_interval_seconds=30,
    description="Starts the load of the devices when a newer delivery is complete",
    tags={"pattern/readiness-marker": ""},
)
def devices_landed(context: dg.SensorEvaluationContext, lake: LakeResource) -> dg.SensorResult:
    """Ask for one run per newest delivery and content."""
    seen = Seen.read(context.cursor)
    newest = landed(lake.landing_path, "devices", Grain.DAY)[-1:]
    fresh = seen.changed(newest)
    stale = fresh and devices_are_stale(lake.landing_path, lake.events)
    requests = [dg.RunRequest(run_key=f"{day.key}/{day.fingerprint}") for day in fresh if stale]
    strange = _report_misnamed(context, lake, "devices", Grain.DAY, seen)
    return _result(requests, seen.cursor([*fresh, *strange], newest))


@dg.sensor(
    job=jobs.access_logs,
    minimum_interval_seconds=30,
    description="Starts the split of access logs that are new or have grown",
    tags={"pattern/passthrough-replicator": ""},
)
def access_logs_landed(lake: LakeResource) -> dg.SensorResult:
    """Ask for one run per set of waiting logs and their sizes."""
    waiting = [(log.name, log.stat().st_size, log.stat().st_mtime_ns) for log in pending(lake.landing_path)]
    requests = [dg.RunRequest(run_key=json.dumps(waiting))] if waiting else []
    return _result(requests, None)


def _news(
    ready: Sequence[LandedPartition], seen: Seen, lake: LakeResource, dataset: str
) -> tuple[list[LandedPartition], list[LandedPartition]]:
    """Give what is to be run, the oldest first, and what a person or the command line has run already."""
    changed = seen.changed(ready)
    stale = set(not_published(changed, lake.events.publications(dataset))) if changed else set()
    fresh = [partition for partition in changed if partition.key in stale]
    return fresh[:MOST_AT_ONCE], [partition for partition in changed if partition.key not in stale]


def _report_misnamed(
    context: dg.SensorEvaluationContext, lake: LakeResource, table: str, grain: Grain, seen: Seen
) -> list[LandedPartition]:
    # Asking for a partition that does not exist would fail the tick, and with it every other partition, for ever.
    found = misnamed(lake.landing_path, table, grain)
    # Kept under another name: what lies in the future today is run when its time has come.
    strange = seen.changed([replace(partition, key=f"misnamed {partition.key}") for partition in found])
    for partition in strange:
        context.log.warning(
            f"{table}: {partition.key} is flagged as complete, and is no {grain.value} that can be run: not a time, "
            "in the future, or before the first partition"
        )
    return strange


def _requests(fresh: Sequence[LandedPartition], cursor: str) -> dg.SensorResult:
    # The run key makes a tick that died before its cursor was kept ask for the same run again, not for a second one.
    requests = [
        dg.RunRequest(run_key=f"{partition.key}/{partition.fingerprint}", partition_key=partition.key)
        for partition in fresh
    ]
    return _result(requests, cursor)


def _result(requests: Sequence[dg.RunRequest], cursor: str | None) -> dg.SensorResult:
    quiet = None if requests else "nothing has landed completely that was not seen before"
    return dg.SensorResult(run_requests=list(requests), skip_reason=quiet, cursor=cursor)
