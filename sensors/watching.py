"""Evaluates the checks that depend on the time, tells people what stands, and reports killed runs as failed."""

from __future__ import annotations

from datetime import datetime, timezone

import dagster as dg

from blogdata.files import LockTimeout
from blogdata.runs import killed_runs
from blogdata.runs.checks import newest_evaluation
from blogdata.runs.lake_resource import DeploymentResource, LakeResource
from blogdata.watch import detectors
from blogdata.watch.alerting import tell
from blogdata.watch.timely_checks import deployment_of, evaluation_of, overdue_evaluation
from quality.contracts import LANDED
from sensors.run_requests import EVERYTHING

ALERTS = "alerts"
# Dagster ends a tick after a minute.
_LOCK_SECONDS = 5.0


@dg.sensor(
    name=ALERTS,
    minimum_interval_seconds=60,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Sends what waits for a person, is overdue or otherwise stands to the channels of [[alerts]]",
)
def tell_people(context: dg.SensorEvaluationContext, deployment: DeploymentResource) -> dg.SkipReason:
    """Send what is due; a channel that fails makes the tick fail, so that its error is seen, and others get theirs."""
    settings = deployment.settings()
    if not settings.alerts:
        return dg.SkipReason("no channel is configured: [[alerts]] in blogdata.toml")
    try:
        sent = tell(settings, lock_seconds=_LOCK_SECONDS)
    except LockTimeout:
        return dg.SkipReason("another process is sending what is due")
    return dg.SkipReason(f"messages sent: {sent}")


NAME = "detectors"


@dg.sensor(
    name=NAME,
    minimum_interval_seconds=120,
    # It only looks: without it its checks would stay empty.
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Warns, in its log and by checks, of data that is overdue, stops, is skewed, unread or late",
    tags={
        "pattern/readiness-marker": "",
        "pattern/flow-interruption-detector": "",
        "pattern/skew-detector": "",
        "pattern/lag-detector": "",
        "pattern/sla-misses-detector": "",
        **EVERYTHING,
    },
)
def detector_readings(context: dg.SensorEvaluationContext, lake: LakeResource) -> dg.SensorResult:
    """Evaluate the checks; log what has changed, and show again what a publication has hidden since."""
    now = _now()
    evaluations = [overdue_evaluation(lake, contract, now) for contract in LANDED.values()]
    evaluations += map(evaluation_of, detectors.readings(deployment_of(lake, now)))
    events, standing = [], []
    for evaluation in evaluations:
        before = newest_evaluation(context.instance, evaluation.asset_check_key)
        dataset = ".".join(evaluation.asset_key.path)
        if not evaluation.passed:
            standing.append(f"{dataset} {evaluation.check_name}")
        if before is None or before[0].metadata.get("verdict") != evaluation.metadata["verdict"]:
            if not evaluation.passed:
                context.log.warning(f"{dataset}, {evaluation.check_name}: {evaluation.description}")
            elif before is not None:
                context.log.info(f"{dataset}, {evaluation.check_name}: over")
        else:
            newest = context.instance.get_latest_materialization_event(evaluation.asset_key)
            if newest is None or newest.timestamp < before[1]:
                continue
        events.append(evaluation)
    reason = f"detected: {', '.join(standing)}" if standing else "nothing is detected"
    return dg.SensorResult(asset_events=events, skip_reason=reason)


def _now() -> datetime:
    return datetime.now(timezone.utc)


@dg.sensor(
    name="dead_runs",
    minimum_interval_seconds=30,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Reports runs as failed whose process was killed: their partitions and pools are free again",
)
def end_dead_runs(context: dg.SensorEvaluationContext) -> dg.SkipReason:
    dead = killed_runs.settle(context.instance, launched=True)
    for run in dead:
        context.log.warning(f"run {run} has failed: its process is no more")
    return dg.SkipReason(f"{len(dead)} runs were dead" if dead else "no run is dead")
