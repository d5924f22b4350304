"""Starts a run for each event from outside; an event waits as a file in the landing zone until its run exists."""

from __future__ import annotations

from pathlib import Path

import dagster as dg

from blogdata.landing.external_trigger import EventRefused, TriggerEvent, read, set_aside, waiting
from blogdata.patterns.data_flow.concurrent_runner import AGAIN
from blogdata.runs.lake_resource import DeploymentResource
from blogdata.runs.names import EVENT
from blogdata.runs.refresh_request import JOB, Request
from quality.contracts import CONTRACTS
from sensors import run_requests
from sensors.run_requests import MOST_AT_ONCE

NAME = "external_events"


@dg.sensor(
    name=NAME,
    job_name=JOB,
    minimum_interval_seconds=10,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Starts a run for each event that was sent by HTTP or as a file in the landing zone",
    tags={"pattern/external-trigger": ""},
)
def start_runs(tick: dg.SensorEvaluationContext, deployment: DeploymentResource) -> dg.SensorResult:
    requests: list[dg.RunRequest] = []
    for file in waiting(deployment.settings().landing):
        if len(requests) == MOST_AT_ONCE:
            break
        try:
            requests += _requested(tick, file)
        except OSError as error:
            # It is tried again at each tick, and keeps no other event waiting.
            tick.log.error(f"an event cannot be read or moved: {error}")
    reason = None if requests else "no event waits whose run is to be requested"
    return dg.SensorResult(run_requests=requests, skip_reason=reason)


def _requested(tick: dg.SensorEvaluationContext, file: Path) -> list[dg.RunRequest]:
    try:
        event = read(file, CONTRACTS)
        if not _has_run(event, tick.instance):
            # Of two files with one key, too, Dagster starts one run.
            return [_request(event)]
        file.unlink(missing_ok=True)
    except EventRefused as error:
        set_aside(file, error)
        tick.log.error(f"{file.name} starts no run: {error.what}")
    return []


def _has_run(event: TriggerEvent, instance: dg.DagsterInstance) -> bool:
    runs = instance.get_runs(dg.RunsFilter(tags={"dagster/run_key": event.key, "dagster/sensor_name": NAME}))
    # A dying tick may have left one that was not launched: requested again, Dagster launches it.
    return any(run.status is not dg.DagsterRunStatus.NOT_STARTED for run in runs)


def _request(event: TriggerEvent) -> dg.RunRequest:
    datasets = list(event.datasets)
    context = {"id": event.id, "source": event.source, "time": event.time.isoformat(), "payload": event.payload}
    tags = {**AGAIN, **{f"{EVENT}{name}": value for name, value in context.items() if value}}
    about = f"event {event.key}: {', '.join(datasets)}"
    return run_requests.refresh_request(event.key, Request(datasets=datasets), about=about, tags=tags)
