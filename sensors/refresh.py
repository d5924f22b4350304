"""What is stale is requested: new landings, hours with late rows, all downstream; and the editors' files of days."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from typing import Any

import dagster as dg

from assets import table_loads
from blogdata.contract.partitions import Grain, key_of
from blogdata.contract.publication import WHOLE_TABLE
from blogdata.deliver import page_files, partner
from blogdata.deliver.destinations import partner_feed
from blogdata.errors import PlatformError
from blogdata.landing.log_splitter import unsplit_logs
from blogdata.operate.config import Settings
from blogdata.patterns.data_flow.concurrent_runner import AGAIN, BACKGROUND, LANE, NEW_DATA
from blogdata.planning import clock
from blogdata.planning.plan import Planner
from blogdata.planning.snapshot import Snapshot
from blogdata.planning.staleness import Lane, Scope
from blogdata.runs import turns
from blogdata.runs.lake_resource import DeploymentResource, LakeResource
from blogdata.runs.refresh_request import JOB, Request
from quality.contracts import GRAPH
from sensors import run_requests
from sensors.run_requests import EVERYTHING

_MAX_REPUBLISHED = 6
"""Most published partitions of a dataset that the run for what has landed computes again: late rows touch these."""
_PAUSE_SECONDS = 60.0
_UNDER_WAY = "a run for the same is under way; what is stale after it is asked for then"


def whatever_is_stale(status: dg.DefaultSensorStatus = dg.DefaultSensorStatus.STOPPED) -> dg.SensorDefinition:
    return dg.sensor(
        name="whatever_is_stale",
        job_name=JOB,
        minimum_interval_seconds=10,
        default_status=status,
        description="Computes what has landed completely, the event hours that late rows touched, and the days and "
        "weeks whose hours are all there, and sends what the partner lacks: all of it in one run, when no such run is "
        "under way",
        tags={"pattern/readiness-marker": "", "pattern/dynamic-late-data-integrator": "", **EVERYTHING},
    )(_tick)


def _tick(context: dg.SensorEvaluationContext, lake: LakeResource, deployment: DeploymentResource) -> dg.SensorResult:
    """Compare what every dataset has read with the current state of the landing zone and the event log."""
    planner = Planner(graph=GRAPH, look=Snapshot(lake.landing_zone, lake.events), scope=Scope.READY)
    # A backfill of a table in order has many periods to go: a run requested now would leave all of them to it.
    in_order = [task.main for task in GRAPH.tasks if task.in_order]
    executed = {main for main in in_order if WHOLE_TABLE in turns.claims(lake.lake, main).held()}
    stale = {main: keys for main, keys in planner.all_stale().items() if main not in executed}
    waiting = {task.main: held for task in GRAPH.tasks if (held := planner.waiting(task))}
    fresh = {main: {key: keys[key] for key in keys if key not in waiting.get(main, ())} for main, keys in stale.items()}
    fresh = {main: keys for main, keys in fresh.items() if keys}
    unread = _unread(deployment.settings(), lake)
    busy = [lane[LANE] for lane in (NEW_DATA, AGAIN) if run_requests.is_under_way(context.instance, lane)]
    requests: list[dg.RunRequest] = []
    if fresh or unread:
        most = 0 if AGAIN[LANE] in busy else _MAX_REPUBLISHED
        tasks = {main: GRAPH.task_of(main) for main in fresh}
        landed = {m: planner.in_lane(tasks[m], fresh[m], Lane.LANDED, max_republished=most) for m in fresh}
        again = {main: {key: keys[key] for key in keys if key not in landed[main]} for main, keys in fresh.items()}
        landed, again = ({main: keys for main, keys in of.items() if keys} for of in (landed, again))
        if landed or unread:
            request = _request([landed, unread], _about(landed), NEW_DATA, retry_waiting=False, max_republished=most)
            requests.append(request)
        if again:
            requests.append(_request([again], f"again: {_about(again)}", AGAIN, retry_waiting=False))
    elif stale:
        if _since_last_run(context.instance) < _PAUSE_SECONDS:
            return dg.SensorResult(skip_reason=f"what is stale waits for a person: {_about(waiting)}")
        requests.append(_request([stale], f"waited for a person: {_about(stale)}", NEW_DATA, lane=Lane.ALL.value))
    elif unsent := _unsent(context, deployment.settings(), lake):
        requests.append(_request([unsent], f"to be sent: {', '.join(unsent)}", NEW_DATA))
    else:
        rest = f", but for what waits for a person: {_about(waiting)}" if waiting else ""
        reason = f"everything that has landed is published, and all that follows from it{rest}"
        return dg.SensorResult(skip_reason=reason)
    idle = [request for request in requests if request.tags[LANE] not in busy]
    return run_requests.request_runs(context.instance, idle, quiet=_UNDER_WAY)


def _request(content: list[object], about: str, tags: Mapping[str, str], **asked: Any) -> dg.RunRequest:
    request = Request(**{"scope": Scope.READY.value, "lane": tags[LANE], **asked})
    return run_requests.refresh_request(_digest(content), request, about=about, tags=tags)


def _unread(settings: Settings, lake: LakeResource) -> list[object]:
    """List what the first step of a run reads: logs that are not split, and tables."""
    logs = [(log.name, log.stat().st_size, log.stat().st_mtime_ns) for log in unsplit_logs(lake.landing_path)]
    # By the hour: what is due again then is another request.
    hour = key_of(clock.now(), Grain.HOUR)
    tables = [(table, hour) for table in table_loads.due(settings, lake.events.publications)]
    return [*logs, *tables]


def _unsent(context: dg.SensorEvaluationContext, settings: Settings, lake: LakeResource) -> dict[str, str]:
    """Map the feed, if it is behind, to the hour up to which it is due; the hour makes the request a new one."""
    try:
        if not partner.is_behind(settings, lake.events, partner_feed.source.dataset):
            return {}
    except PlatformError as error:
        # What is stale does not depend on the partner.
        context.log.warning(str(error))
        return {}
    return {partner_feed.contract.dataset: partner.released(settings, clock.now())}


def _about(stale: Mapping[str, Mapping[str, object]]) -> str:
    return "; ".join(
        f"{main} {next(iter(keys)) or 'whole'}" + (f" and {len(keys) - 1} more" if len(keys) > 1 else "")
        for main, keys in stale.items()
    )


def _since_last_run(instance: dg.DagsterInstance) -> float:
    for record in instance.get_run_records(dg.RunsFilter(job_name=JOB), limit=1):
        return time.time() - record.update_timestamp.timestamp()
    return _PAUSE_SECONDS


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


write_page_files = dg.define_asset_job(
    "page_files",
    selection=dg.AssetSelection.assets(page_files.KEY),
    description="The editors' files of one day",
    tags=BACKGROUND,
)


def page_files_due(status: dg.DefaultSensorStatus = dg.DefaultSensorStatus.STOPPED) -> dg.SensorDefinition:
    return dg.sensor(
        name="page_files_due",
        job=write_page_files,
        minimum_interval_seconds=30,
        default_status=status,
        description="Writes the editors' files of each published day that lack it: a run per day",
        tags={"pattern/parallel-split": "", "pattern/exclusive-choice": "", **EVERYTHING},
    )(_page_files_tick)


def _page_files_tick(context: dg.SensorEvaluationContext, lake: LakeResource) -> dg.SensorResult:
    due = page_files.due(lake.lake, lake.events, page_files.folder_of(lake))
    requests = [dg.RunRequest(run_key=f"{day} {version}", partition_key=day) for day, version in due.items()]
    return run_requests.request_runs(context.instance, requests, quiet="the files have every day that is published")
