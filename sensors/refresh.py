"""One sensor requests everything that is stale: new landings, hours with late rows, and everything downstream."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg

from assets import table_loads
from assets.serving import FEEDS
from blogdata.errors import PlatformError
from blogdata.orchestration import partner, turns
from blogdata.orchestration.checks import waiting_result
from blogdata.orchestration.computation import evaluation
from blogdata.orchestration.lake_resource import DeploymentResource, LakeResource
from blogdata.orchestration.refresh_request import JOB, Request
from blogdata.patterns.data_flow.concurrent_runner import AGAIN, LANE, NEW_DATA
from blogdata.patterns.ingestion.log_splitter import refused_logs, unsplit_logs
from blogdata.planning import clock
from blogdata.planning.arrivals import Arrivals, link_warnings
from blogdata.planning.plan import Planner
from blogdata.planning.snapshot import Snapshot
from blogdata.planning.staleness import Lane, Scope
from blogdata.publish.partitions import Grain, key_of
from blogdata.services.config import Settings
from quality.contracts import GRAPH, LANDED
from sensors import run_requests
from sensors.run_requests import EVERYTHING

_FEW_AGAIN = 6
"""Partitions of a dataset, the newest, that the run for what has landed computes again: late rows touch these."""
_PAUSE_SECONDS = 60.0
_UNDER_WAY = "a run for the same is under way; what is stale after it is asked for then"


def whatever_is_stale(
    targets: Sequence[dg.JobDefinition | dg.UnresolvedAssetJobDefinition],
    status: dg.DefaultSensorStatus = dg.DefaultSensorStatus.STOPPED,
) -> dg.SensorDefinition:
    """Build the sensor of the job `refresh`, and of those over its assets (:func:`sensors.jobs.refreshed`)."""
    return dg.sensor(
        name="whatever_is_stale",
        jobs=targets,
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
    executed = {task.main for task in GRAPH.tasks if turns.is_executed(lake.lake, task)}
    stale = {main: keys for main, keys in planner.all_stale().items() if main not in executed}
    waiting = {task.main: planner.waiting(task) for task in GRAPH.tasks}
    fresh = {main: {key: why for key, why in keys.items() if key not in waiting[main]} for main, keys in stale.items()}
    fresh = {main: keys for main, keys in fresh.items() if keys}
    seen = json.loads(context.cursor) if context.cursor else {}
    events, judged_now = _judged(waiting, seen.get("waiting", {}))
    landed = {dataset: Arrivals.of(contract, planner.look.zone) for dataset, contract in LANDED.items()}
    warned = _warn(context, planner.look, landed, stale, seen.get("told", []))
    cursor = json.dumps({"waiting": judged_now, "told": warned}, sort_keys=True)
    unsent = {} if stale else _unsent(context, deployment.settings(), lake)
    unread = _unread(deployment.settings(), lake)
    result = _asked(
        context, planner, unread, fresh, stale, {main: keys for main, keys in waiting.items() if keys}, unsent
    )
    return dg.SensorResult(
        run_requests=result.run_requests, skip_reason=result.skip_reason, cursor=cursor, asset_events=events
    )


def _asked(
    context: dg.SensorEvaluationContext,
    planner: Planner,
    unread: list[object],
    fresh: Mapping[str, Mapping[str, str]],
    stale: Mapping[str, Mapping[str, str]],
    waiting: Mapping[str, Mapping[str, PlatformError]],
    unsent: Mapping[str, str],
) -> dg.SensorResult:
    if not stale and not unread and not unsent:
        done = "everything that has landed is published, and all that follows from it"
        return dg.SensorResult(
            skip_reason=f"{done}, but for what waits for a person: {_about(waiting)}" if waiting else done
        )
    busy = [lane[LANE] for lane in (NEW_DATA, AGAIN) if run_requests.is_under_way(context.instance, lane)]
    requests: list[dg.RunRequest] = []
    if fresh or unread:
        few = 0 if AGAIN[LANE] in busy else _FEW_AGAIN
        landed = _in_lane(planner, fresh, Lane.LANDED, few)
        left = {
            main: {key: why for key, why in keys.items() if key not in landed.get(main, {})}
            for main, keys in fresh.items()
        }
        again = {main: keys for main, keys in left.items() if keys}
        if landed or unread:
            requests.append(_request([landed, unread], _about(landed), NEW_DATA, retry_waiting=False, few_again=few))
        if again:
            requests.append(_request([again], f"again: {_about(again)}", AGAIN, retry_waiting=False))
    elif unsent:
        requests.append(_request([unsent], f"to be sent: {', '.join(unsent)}", NEW_DATA))
    elif _since_last_run(context.instance) < _PAUSE_SECONDS:
        return dg.SensorResult(skip_reason=f"what is stale waits for a person: {_about(waiting)}")
    else:
        requests.append(_request([stale], f"waited for a person: {_about(stale)}", NEW_DATA, lane=Lane.ALL.value))
    wanted = [request for request in requests if request.tags[LANE] not in busy]
    return run_requests.request_runs(context.instance, wanted, quiet=_UNDER_WAY)


def _in_lane(
    planner: Planner, stale: Mapping[str, Mapping[str, str]], lane: Lane, few: int
) -> dict[str, dict[str, str]]:
    found = {main: planner.in_lane(GRAPH.task_of(main), keys, lane, few=few) for main, keys in stale.items()}
    return {main: keys for main, keys in found.items() if keys}


def _request(content: list[object], about: str, tags: Mapping[str, str], **asked: Any) -> dg.RunRequest:
    request = Request(**{"scope": Scope.READY.value, "lane": tags[LANE], **asked})
    return run_requests.refresh_request(_digest(content), request, about=about, tags=tags)


def _unread(settings: Settings, lake: LakeResource) -> list[object]:
    """List what the first step of a run reads: logs that are not split, and tables."""
    logs = [(log.name, log.stat().st_size, log.stat().st_mtime_ns) for log in unsplit_logs(lake.landing_path)]
    # By the hour: what is due again then is another request.
    hour = key_of(clock.now(), Grain.HOUR)
    tables = [(table, hour) for table in table_loads.due(settings, lake.events)]
    return [*logs, *tables]


def _unsent(context: dg.SensorEvaluationContext, settings: Settings, lake: LakeResource) -> dict[str, str]:
    """Map each feed that is behind to the hour up to which it is due; the hour makes the request a new one."""
    try:
        behind = [
            feed.contract.dataset for feed in FEEDS if partner.is_behind(settings, lake.events, feed.source.dataset)
        ]
    except PlatformError as error:
        # What is stale does not depend on the partner.
        context.log.warning(str(error))
        return {}
    return dict.fromkeys(behind, partner.released(settings, clock.now()))


def _warn(
    context: dg.SensorEvaluationContext,
    look: Snapshot,
    landed: Mapping[str, Arrivals],
    stale: Mapping[str, Mapping[str, str]],
    warned: Sequence[str],
) -> list[str]:
    """Warn once per anomaly in the landing zone: partitions changed, empty, misnamed or refused, and stray files."""
    lines = []
    for dataset, found in landed.items():
        lines += [
            f"{line} ({stale[dataset][key]})"
            for key, line in found.changed_warnings(look)
            if key in stale.get(dataset, {})
        ]
        lines += [found.impossible_key_warning([partition], clock.now()) for partition in found.with_impossible_key]
        lines += filter(None, [found.astray_warning])
        lines += link_warnings(link for partition in found.refused for link in partition.links)
    lines += link_warnings(refused_logs(look.zone.folder))
    digests = {_digest(line): line for line in lines}
    for digest, line in digests.items():
        if digest not in warned:
            context.log.warning(line)
    return sorted(digests)


def _judged(
    waiting: Mapping[str, Mapping[str, PlatformError]], seen: Mapping[str, str]
) -> tuple[list[dg.AssetCheckEvaluation], dict[str, str]]:
    """Evaluate the checks `waiting` of the datasets whose waiting partitions have changed since the last tick."""
    now = {main: _digest(sorted(found)) for main, found in waiting.items() if found}
    events = [
        evaluation(waiting_result(contract, waiting[task.main]))
        for task in GRAPH.tasks
        if seen.get(task.main) != now.get(task.main)
        for contract in task.contracts
    ]
    return events, now


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
