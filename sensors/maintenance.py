"""Requests the maintenance of the tables by the statistics in their logs, and reports killed runs as failed."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict

import dagster as dg

from assets.ops import what_is_due
from blogdata.orchestration import dead_runs
from blogdata.orchestration.lake_resource import LakeResource
from blogdata.orchestration.upkeep import Fault
from sensors import jobs, run_requests
from sensors.run_requests import EVERYTHING


@dg.sensor(
    name="dead_runs",
    minimum_interval_seconds=30,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Reports runs as failed whose process was killed: their partitions and pools are free again",
)
def end_dead_runs(context: dg.SensorEvaluationContext) -> dg.SkipReason:
    dead = dead_runs.settle(context.instance, launched=True)
    for run in dead:
        context.log.warning(f"run {run} has failed: its process is no more")
    return dg.SkipReason(f"{len(dead)} runs were dead" if dead else "no run is dead")


def tables_scattered(status: dg.DefaultSensorStatus = dg.DefaultSensorStatus.STOPPED) -> dg.SensorDefinition:
    return dg.sensor(
        name="maintenance",
        job=jobs.maintain,
        minimum_interval_seconds=600,
        default_status=status,
        description="Compacts the tables that have too many small files, and removes files that nobody needs",
        tags={"pattern/compactor": "", **EVERYTHING},
    )(_tick)


def _tick(context: dg.SensorEvaluationContext, lake: LakeResource) -> dg.SensorResult:
    """Read the logs of all tables, without Spark; one run does all that is due."""
    due = []
    for found in what_is_due(lake):
        if isinstance(found, Fault):
            # Not every run has to fail for it: runs and `blogdata doctor` name it.
            context.log.warning(f"{found.dataset} is left: {found.error}")
        else:
            due.append(found)
    content = json.dumps([asdict(one) for one in due])
    key = hashlib.sha256(content.encode()).hexdigest()[:16]
    requests = [dg.RunRequest(run_key=key)] if due else []
    return run_requests.request_runs(context.instance, requests, quiet="every table is tidy")
