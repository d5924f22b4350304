"""Readiness sensors: what has landed completely starts the run that reads it, exactly once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import dagster as dg

from assets.staleness import devices_are_stale, landed, misnamed, not_published
from patterns.core.commit import WHOLE_TABLE, Entry
from patterns.core.partitions import Grain
from patterns.ingestion.log_splitter import pending
from patterns.ingestion.readiness_marker import LandedPartition, late_files
from resources.lake import LakeResource
from sensors import asking, jobs, under_way
from sensors.cursor import Seen

_QUIET = "everything that has landed completely is published"


@dg.sensor(
    job=jobs.hour_of_arrival,
    minimum_interval_seconds=15,
    description="Starts an hour when its producer has flagged it, and again when files came after the flag",
    tags={"pattern/readiness-marker": ""},
)
def hour_is_ready(context: dg.SensorEvaluationContext, lake: LakeResource) -> dg.SensorResult:
    """Ask for each complete hour whose content is not the published one."""
    seen = Seen.read(context.cursor)
    ready = landed(lake.landing_path, "visits", Grain.HOUR)
    result = _ask(
        context, lake, "bronze.visits", ready, seen, _report_misnamed(context, lake, "visits", Grain.HOUR, seen)
    )
    asked = {request.partition_key for request in result.run_requests or ()}
    for hour in ready:
        if hour.key in asked:
            _warn(context, hour, known=seen.knows(hour.key))
    return result


@dg.sensor(
    job=jobs.users_of_a_day,
    minimum_interval_seconds=30,
    description="Starts the load of a day's users when the delivery is complete",
    tags={"pattern/readiness-marker": ""},
)
def users_landed(context: dg.SensorEvaluationContext, lake: LakeResource) -> dg.SensorResult:
    """Ask for each complete delivery whose content is not the published one."""
    seen = Seen.read(context.cursor)
    ready = landed(lake.landing_path, "users", Grain.DAY)
    return _ask(context, lake, "bronze.users", ready, seen, _report_misnamed(context, lake, "users", Grain.DAY, seen))


@dg.sensor(
    job=jobs.devices,
    minimum_interval_seconds=30,
    description="Starts the load of the devices when a newer delivery is complete",
    tags={"pattern/readiness-marker": ""},
)
def devices_landed(context: dg.SensorEvaluationContext, lake: LakeResource) -> dg.SensorResult:
    """Ask for the newest delivery while its content is not the published one."""
    seen = Seen.read(context.cursor)
    newest = landed(lake.landing_path, "devices", Grain.DAY)[-1:]
    strange = _report_misnamed(context, lake, "devices", Grain.DAY, seen)
    changed = seen.changed(newest)
    stale = changed if changed and devices_are_stale(lake.landing_path, lake.events) else []
    published = lake.events.publications("bronze.devices").get(WHOLE_TABLE) if stale else None
    requests = [dg.RunRequest(run_key=_content("bronze.devices", day, published)) for day in stale]
    done = [day for day in changed if day not in stale]
    return asking.ask(context.instance, requests, quiet=_QUIET, cursor=seen.cursor([*done, *strange], newest))


@dg.sensor(
    job=jobs.access_logs,
    minimum_interval_seconds=30,
    description="Starts the split of access logs that are new or have grown",
    tags={"pattern/passthrough-replicator": ""},
)
def access_logs_landed(context: dg.SensorEvaluationContext, lake: LakeResource) -> dg.SensorResult:
    """Ask for one split of all the waiting logs, at their sizes."""
    waiting = [(log.name, log.stat().st_size, log.stat().st_mtime_ns) for log in pending(lake.landing_path)]
    requests = [dg.RunRequest(run_key=json.dumps(waiting))] if waiting else []
    return asking.ask(context.instance, requests, quiet=_QUIET)


def _ask(
    context: dg.SensorEvaluationContext,
    lake: LakeResource,
    dataset: str,
    ready: Sequence[LandedPartition],
    seen: Seen,
    strange: Sequence[LandedPartition],
) -> dg.SensorResult:
    changed = seen.changed(ready)
    published = lake.events.publications(dataset, [partition.key for partition in changed])
    stale = set(not_published(changed, published))
    # What a claim is on is being computed by the command line; it is asked for when that has died.
    held = under_way.claims(lake.lake, dataset).held() if stale else {}
    requests = [
        dg.RunRequest(run_key=_content(dataset, partition, published.get(partition.key)), partition_key=partition.key)
        for partition in changed
        if partition.key in stale and partition.key not in held
    ]
    # Remembered is what is published: a run that was asked for may fail.
    done = [partition for partition in changed if partition.key not in stale]
    return asking.ask(context.instance, requests, quiet=_QUIET, cursor=seen.cursor([*done, *strange], ready))


def _content(dataset: str, partition: LandedPartition, published: Entry | None) -> str:
    # What is taken back has the fingerprint it had before: it is told from that by what it replaces.
    replaced = "nothing" if published is None else f"version {published.version}"
    return f"{dataset} {partition.key} {partition.fingerprint} over {replaced}"


def _warn(context: dg.SensorEvaluationContext, hour: LandedPartition, *, known: bool) -> None:
    late = ", ".join(file.name for file in late_files(hour))
    if known or late:
        context.log.warning(f"hour {hour.key} changed after it was complete: {late or 'its files changed'}")
    if hour.empty:
        context.log.warning(f"hour {hour.key} is flagged as complete and has no data")


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
