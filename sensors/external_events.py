"""Starts a run for each event from outside; an event waits in the inbox until its run exists."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import dagster as dg

from blogdata.orchestration.deployment_resource import DeploymentResource
from blogdata.orchestration.external_events import trigger
from blogdata.orchestration.names import EVENT
from blogdata.orchestration.refresh_request import JOB, Request
from blogdata.patterns.data_flow.concurrent_runner import AGAIN
from blogdata.patterns.ingestion.event_inbox import Inbox, InboxEntry
from blogdata.patterns.ingestion.external_trigger import MOST_TRIES, Trigger, context, pause
from blogdata.patterns.ingestion.landed_links import LinkRefused
from blogdata.patterns.ingestion.notification_files import take_files
from blogdata.planning.window import Window
from quality.contracts import CONTRACTS
from sensors import run_requests
from sensors.request_throttle import MOST_AT_ONCE

RUN_KEY = ".dagster/blogdata_event"
"""Tag of a run, hidden from the list of runs: key of the event and the number of its run."""
_LOOKED_UP_AT_ONCE = 500


@dg.sensor(
    name="external_events",
    job_name=JOB,
    minimum_interval_seconds=10,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Starts a run for each event that a sender of [[events.senders]] has sent by HTTP or as a file",
    tags={"pattern/external-trigger": ""},
)
def start_runs(tick: dg.SensorEvaluationContext, deployment: DeploymentResource) -> dg.SensorResult:
    """Take notification files, note the runs that exist by now, and request those that are due."""
    settings = deployment.settings()
    entrance = trigger(settings, CONTRACTS)
    _take_files(tick, entrance, settings.landing)
    _note_runs(tick, entrance.inbox)
    now, requests, waiting = _now(), list[dg.RunRequest](), entrance.inbox.waiting()
    for entry in waiting:
        if entry.next_try > now or len(requests) == MOST_AT_ONCE:
            continue
        if reason := _hopeless(entrance, entry):
            entrance.inbox.failed(entry, reason)
            tick.log.error(f"event {entry.event.key} starts no run: {reason}")
            continue
        requests.append(_request(entry))
        # Noted before Dagster has the request: if this process dies now, it is requested again after the pause.
        entrance.inbox.requested(entry, next_try=now + pause(entry.tries + 1))
    left = f"{len(waiting)} events wait for their runs to exist" if waiting else "no event waits"
    return dg.SensorResult(run_requests=requests, skip_reason=None if requests else left)


def _take_files(tick: dg.SensorEvaluationContext, entrance: Trigger, landing: Path) -> None:
    try:
        for error in take_files(entrance, landing):
            tick.log.warning(f"refused: {error.what}")
    except LinkRefused as error:
        # The events of other channels still start their runs.
        tick.log.error(str(error))


def _note_runs(tick: dg.SensorEvaluationContext, inbox: Inbox) -> None:
    """Note the runs of waiting events; one whose run ended before it began gets another one."""
    requested = [entry for entry in inbox.waiting() if entry.tries]
    for start in range(0, len(requested), _LOOKED_UP_AT_ONCE):
        part = requested[start : start + _LOOKED_UP_AT_ONCE]
        runs = _runs(tick.instance, part)
        for entry in part:
            record = runs.get(entry.run_key)
            if record is None:
                continue
            run = record.dagster_run
            if run.status is dg.DagsterRunStatus.FAILURE and record.start_time is None:
                reason = f"run {run.run_id} failed before it began"
                inbox.start_again(entry, reason=reason, next_try=entry.next_try)
                tick.log.warning(f"event {entry.event.key}: {reason}")
            else:
                inbox.started(entry, run.run_id)


def _runs(instance: dg.DagsterInstance, entries: Sequence[InboxEntry]) -> dict[str, dg.RunRecord]:
    keys = [entry.run_key for entry in entries]
    records = instance.get_run_records(dg.RunsFilter(tags={RUN_KEY: keys}))
    # A run that a person runs again has the tags of the first one, which is the last of the list.
    return {record.dagster_run.tags[RUN_KEY]: record for record in records}


def _hopeless(entrance: Trigger, entry: InboxEntry) -> str:
    if error := entrance.undeclared(entry.event):
        return error.what
    if entry.tries >= MOST_TRIES:
        return f"after {entry.tries} requests there is no run" + (f"; {entry.reason}" if entry.reason else "")
    return ""


def _request(entry: InboxEntry) -> dg.RunRequest:
    event, window = entry.event, entry.event.window
    return run_requests.refresh_request(
        entry.run_key,
        Request(
            datasets=list(event.datasets),
            span=Window(start=window[0], end=window[1]).written() if window else "",
            only_again=window is not None,
        ),
        about=f"event {event.key}: {event.request}",
        tags={**AGAIN, RUN_KEY: entry.run_key, **{f"{EVENT}{name}": value for name, value in context(entry).items()}},
    )


def _now() -> float:
    return time.time()
