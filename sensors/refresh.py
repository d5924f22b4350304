"""One sensor requests everything that is stale: new landings, hours with late rows, and everything downstream."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence

import dagster as dg

from assets.serving import FEEDS
from errors import PlatformError
from orchestration import partner, turns
from orchestration.computation import evaluation
from orchestration.refresh import JOB, Request
from orchestration.waiting import waiting_check
from patterns.ingestion.log_splitter import refused_logs, unsplit_logs
from planning import arrivals
from planning import look as clock
from planning.look import Snapshot
from planning.plan import Planner
from planning.staleness import Scope
from quality.contracts import GRAPH, LANDED
from resources.deployment import DeploymentResource
from resources.lake import LakeResource
from sensors import request_throttle, run_requests
from sensors.run_requests import EVERYTHING
from services.config import Settings

_PAUSE_SECONDS = 60.0


def whatever_is_stale(status: dg.DefaultSensorStatus = dg.DefaultSensorStatus.STOPPED) -> dg.SensorDefinition:
    """Build the sensor.

    Args:
        status: Whether it is on from the start.
    """
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
    executed = {task.main for task in GRAPH.tasks if turns.is_executed(lake.lake, task)}
    stale = {main: keys for main, keys in planner.all_stale().items() if main not in executed}
    waiting = {task.main: planner.waiting(task) for task in GRAPH.tasks}
    fresh = {main: {key: why for key, why in keys.items() if key not in waiting[main]} for main, keys in stale.items()}
    fresh = {main: keys for main, keys in fresh.items() if keys}
    seen = json.loads(context.cursor) if context.cursor else {}
    events, judged_now = _judged(waiting, seen.get("waiting", {}))
    warned = _warn(context, planner.look, stale, seen.get("told", []))
    cursor = json.dumps({"waiting": judged_now, "told": warned}, sort_keys=True)
    unsent = {} if stale else _unsent(context, deployment.settings(), lake)
    result = _asked(context, lake, fresh, stale, {main: keys for main, keys in waiting.items() if keys}, unsent)
    return dg.SensorResult(
        run_requests=result.run_requests, skip_reason=result.skip_reason, cursor=cursor, asset_events=events
    )


def _asked(
    context: dg.SensorEvaluationContext,
    lake: LakeResource,
    fresh: Mapping[str, Mapping[str, str]],
    stale: Mapping[str, Mapping[str, str]],
    waiting: Mapping[str, Mapping[str, PlatformError]],
    unsent: Mapping[str, str],
) -> dg.SensorResult:
    logs = [(log.name, log.stat().st_size, log.stat().st_mtime_ns) for log in unsplit_logs(lake.landing_path)]
    if not stale and not logs and not unsent:
        done = "everything that has landed is published, and all that follows from it"
        return dg.SensorResult(
            skip_reason=f"{done}, but for what waits for a person: {_about(waiting)}" if waiting else done
        )
    if run_requests.is_under_way(context.instance):
        return dg.SensorResult(
            skip_reason="a run over the lineage is under way; what is stale after it is asked for then"
        )
    if unsent and not logs:
        request = run_requests.refresh_request(
            _digest([unsent]), Request(scope=Scope.READY.value), about=f"to be sent: {', '.join(unsent)}"
        )
        return request_throttle.request_runs(context.instance, [request], quiet="")
    if fresh or logs:
        request = run_requests.refresh_request(
            _digest([fresh, logs]), Request(scope=Scope.READY.value, retry_waiting=False), about=_about(fresh)
        )
        return request_throttle.request_runs(context.instance, [request], quiet="")
    left = _since_last_run(context.instance)
    if left < _PAUSE_SECONDS:
        return dg.SensorResult(skip_reason=f"what is stale waits for a person: {_about(waiting)}")
    request = run_requests.refresh_request(
        _digest([stale]), Request(scope=Scope.READY.value), about=f"again: {_about(stale)}"
    )
    return request_throttle.request_runs(context.instance, [request], quiet="")


def _unsent(context: dg.SensorEvaluationContext, settings: Settings, lake: LakeResource) -> dict[str, str]:
    """Map each feed that is behind to the hour up to which it is due; the hour makes the request a new one."""
    if not partner.is_configured(settings):
        return {}
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
    context: dg.SensorEvaluationContext, look: Snapshot, stale: Mapping[str, Mapping[str, str]], warned: Sequence[str]
) -> list[str]:
    """Warn once per anomaly in the landing zone: partitions changed after completion, empty, misnamed or refused."""
    lines = []
    for dataset, contract in LANDED.items():
        found = arrivals.Arrivals.of(contract, look.zone)
        lines += [
            f"{line} ({stale[dataset][key]})"
            for key, line in found.changed_warnings(look)
            if key in stale.get(dataset, {})
        ]
        lines += [found.impossible_key_warning([partition], clock.now()) for partition in found.with_impossible_key]
        lines += arrivals.link_warnings(link for partition in found.refused for link in partition.links)
    lines += arrivals.link_warnings(refused_logs(look.zone.folder))
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
        evaluation(waiting_check(contract, waiting[task.main]))
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
