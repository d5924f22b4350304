"""Dynamic Late Data Integrator: exactly the event hours that late rows touched run again, each once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import dagster as dg
from dagster._core.storage.tags import (
    ASSET_PARTITION_RANGE_END_TAG,
    ASSET_PARTITION_RANGE_START_TAG,
    PARTITION_NAME_TAG,
)

from assets.plan import stale_event_hours
from orchestration.dataset import key_of
from patterns.core.partitions import Grain, between
from resources.lake import LakeResource
from sensors import jobs
from sensors.landing import MOST_AT_ONCE

VISITS = key_of("silver.visits")


@dg.sensor(
    job=jobs.event_hour,
    minimum_interval_seconds=30,
    description="Runs the event hours again that late data touched; the days and weeks above them follow",
    tags={"pattern/dynamic-late-data-integrator": ""},
)
def late_data(context: dg.SensorEvaluationContext, lake: LakeResource) -> dg.SensorResult | dg.SkipReason:
    """Compare, per event hour, what bronze has with what silver has read; both are in the event log."""
    version = lake.lake.version("bronze.visits")
    if version is None:
        return dg.SkipReason("nothing has been published yet")
    running = _running(context.instance)
    behind = [hour for hour in stale_event_hours(lake.events) if hour not in running]
    if not behind:
        return dg.SkipReason("every event hour has seen all of its rows")
    # An hour is asked for once per version of bronze: a run that is under way is not started twice.
    requests = [dg.RunRequest(run_key=f"{hour}@{version}", partition_key=hour) for hour in behind[:MOST_AT_ONCE]]
    return dg.SensorResult(run_requests=requests)


def _running(instance: dg.DagsterInstance) -> set[str]:
    # The hour that is just arriving is on its way through silver in the run that brought it.
    statuses = [
        dg.DagsterRunStatus.QUEUED,
        dg.DagsterRunStatus.NOT_STARTED,
        dg.DagsterRunStatus.STARTING,
        dg.DagsterRunStatus.STARTED,
    ]
    under_way = instance.get_runs(dg.RunsFilter(statuses=statuses))
    return {hour for run in under_way if _writes_visits(run) for hour in _hours(run.tags)}


def _writes_visits(run: dg.DagsterRun) -> bool:
    # A run of a whole job names no assets; a backfill, or a run a person started, does.
    if run.asset_selection is None:
        return run.job_name in (jobs.hour_of_arrival.name, jobs.event_hour.name)
    return VISITS in run.asset_selection


def _hours(tags: Mapping[str, str]) -> Sequence[str]:
    if PARTITION_NAME_TAG in tags:
        return [tags[PARTITION_NAME_TAG]]
    if ASSET_PARTITION_RANGE_START_TAG in tags:
        return between(tags[ASSET_PARTITION_RANGE_START_TAG], tags[ASSET_PARTITION_RANGE_END_TAG], Grain.HOUR)
    return []
