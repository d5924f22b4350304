"""Dynamic Late Data Integrator: exactly the event hours that late rows touched run again, each once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import dagster as dg
from dagster._core.storage.tags import (
    ASSET_PARTITION_RANGE_END_TAG,
    ASSET_PARTITION_RANGE_START_TAG,
    PARTITION_NAME_TAG,
)

from assets.plan import STALE, late, stage_of, stale_late_hours
from orchestration import replay_planner
from orchestration.dataset import key_of
from orchestration.replay_planner import Wanted
from patterns.core.partitions import Grain, between
from resources.lake import LakeResource
from sensors import jobs
from sensors.landing import MOST_AT_ONCE


@dg.sensor(
    job=jobs.event_hour,
    minimum_interval_seconds=30,
    description="Runs the event hours again that late rows, or late users, touched; days and weeks above them follow",
    tags={"pattern/dynamic-late-data-integrator": ""},
)
def late_data(context: dg.SensorEvaluationContext, lake: LakeResource) -> dg.SensorResult | dg.SkipReason:
    """Compare, per event hour, what bronze and the users have with what silver has read; all is in the event log."""
    return _requests(context, lake, late(lake.events), of="silver.visits", after=("bronze.visits", "silver.users"))


@dg.sensor(
    job=jobs.late_rows,
    minimum_interval_seconds=30,
    description="Captures the late rows of an hour of arrival again when an earlier hour has moved its watermark",
    tags={"pattern/late-data-detector": ""},
)
def watermark_moved(context: dg.SensorEvaluationContext, lake: LakeResource) -> dg.SensorResult | dg.SkipReason:
    """Compare the watermark each hour was judged by with the one it has now."""
    wanted = {"silver.late_visits": dict.fromkeys(stale_late_hours(lake.events), STALE)}
    return _requests(context, lake, wanted, of="silver.late_visits", after=("bronze.visits",))


def _requests(
    context: dg.SensorEvaluationContext, lake: LakeResource, wanted: Wanted, *, of: str, after: Sequence[str]
) -> dg.SensorResult | dg.SkipReason:
    planned = {hour: run.datasets for run in replay_planner.cut(stage_of(of), wanted) for hour in run.keys}
    running = _running(context.instance, key_of(of)) if planned else frozenset[str]()
    waiting = sorted(planned.keys() - running)
    if not waiting:
        return dg.SkipReason("every hour has seen all of its rows")
    # An hour is asked for once per state of its inputs: a run that failed is a person's, not this sensor's.
    state = ".".join(str(version) for version in lake.lake.versions(after).values())
    return dg.SensorResult(
        run_requests=[
            dg.RunRequest(
                run_key=f"{hour}@{state}",
                partition_key=hour,
                asset_selection=[key_of(dataset) for dataset in planned[hour]],
            )
            for hour in waiting[:MOST_AT_ONCE]
        ]
    )


def _running(instance: dg.DagsterInstance, dataset: dg.AssetKey) -> frozenset[str]:
    # The hour that is just arriving is on its way through silver in the run that brought it.
    statuses = [
        dg.DagsterRunStatus.QUEUED,
        dg.DagsterRunStatus.NOT_STARTED,
        dg.DagsterRunStatus.STARTING,
        dg.DagsterRunStatus.STARTED,
    ]
    under_way = instance.get_runs(dg.RunsFilter(statuses=statuses))
    return frozenset(hour for run in under_way if _writes(run, dataset) for hour in _hours(run.tags))


def _writes(run: dg.DagsterRun, dataset: dg.AssetKey) -> bool:
    # A run of a whole job names no assets; a backfill, or a run a person started, does.
    if run.asset_selection is None:
        return dataset in jobs.WRITES.get(run.job_name, ())
    return dataset in run.asset_selection


def _hours(tags: Mapping[str, str]) -> Sequence[str]:
    if PARTITION_NAME_TAG in tags:
        return [tags[PARTITION_NAME_TAG]]
    if ASSET_PARTITION_RANGE_START_TAG in tags:
        return between(tags[ASSET_PARTITION_RANGE_START_TAG], tags[ASSET_PARTITION_RANGE_END_TAG], Grain.HOUR)
    return []
