"""Evaluates the detectors, warns of overdue partitions, and tells people what stands: none of it fails a run."""

from __future__ import annotations

from datetime import datetime, timezone

import dagster as dg

from assets.checks import TIMED, deployment_of, evaluation_of, overdue_evaluation
from blogdata.operations.alerting import tell
from blogdata.orchestration.checks import newest_evaluation
from blogdata.orchestration.lake_resource import DeploymentResource, LakeResource
from blogdata.planning import detectors
from blogdata.planning.arrivals import Arrivals
from blogdata.services import dagster_home
from blogdata.services.files import LockTimeout
from quality.contracts import LANDED
from sensors.run_requests import EVERYTHING


def overdue_arrivals(status: dg.DefaultSensorStatus = dg.DefaultSensorStatus.STOPPED) -> dg.SensorDefinition:
    return dg.sensor(
        name="overdue",
        minimum_interval_seconds=60,
        default_status=status,
        description="Warns, in its log and by the checks of the landing zone, of hours and deliveries that are overdue",
        tags={"pattern/readiness-marker": "", **EVERYTHING},
    )(_look)


def _look(context: dg.SensorEvaluationContext, lake: LakeResource) -> dg.SensorResult:
    """Warn once per set of overdue partitions, report once when it is over, and update the checks."""
    events, standing = list[dg.AssetCheckEvaluation](), list[str]()
    for contract in LANDED.values():
        found = Arrivals.of(contract, lake.landing_zone).overdue(lake.events, _now())
        if found.warning:
            standing.append(f"{len(found.keys)} of {found.table}")
        result = overdue_evaluation(contract, found)
        shown = newest_evaluation(context.instance, result.asset_check_key)
        if shown is not None and (shown[0].passed, shown[0].description) == (result.passed, result.description):
            continue
        events.append(result)
        if found.warning:
            context.log.warning(found.warning)
        elif shown is not None:
            context.log.info(f"{found.table}: nothing is overdue any more")
    return dg.SensorResult(
        asset_events=events, skip_reason=f"overdue: {', '.join(standing)}" if standing else "nothing is overdue"
    )


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
    dagster_home.note_tick(settings.home, ALERTS)
    if not settings.alerts:
        return dg.SkipReason("no channel is configured: [[alerts]] in blogdata.toml")
    try:
        sent = tell(settings, lock_seconds=_LOCK_SECONDS)
    except LockTimeout:
        return dg.SkipReason("another process is sending what is due")
    return dg.SkipReason(f"messages sent: {sent}")


NAME = "detectors"


def detector_readings(status: dg.DefaultSensorStatus = dg.DefaultSensorStatus.STOPPED) -> dg.SensorDefinition:
    return dg.sensor(
        name=NAME,
        minimum_interval_seconds=120,
        default_status=status,
        description="Warns, in its log, by checks and in ops.events, of data that stops, is skewed, unread or late",
        tags={
            "pattern/flow-interruption-detector": "",
            "pattern/skew-detector": "",
            "pattern/lag-detector": "",
            "pattern/sla-misses-detector": "",
            **EVERYTHING,
        },
    )(_tick)


def _tick(context: dg.SensorEvaluationContext, lake: LakeResource) -> dg.SensorResult:
    """Read all detectors; record, log and show the verdicts that have changed."""
    # The checkpoints lie in the deployment's home.
    dagster_home.note_tick(lake.checkpoints_path.parent, NAME)
    found = detectors.readings(deployment_of(lake, _now()))
    for reading in detectors.record(lake.events, found):
        if reading.stands:
            context.log.warning(f"{reading.dataset}, {reading.detector}: {reading.what}; {reading.remedy}")
        else:
            context.log.info(f"{reading.dataset}, {reading.detector}: over")
    evaluations = [
        evaluation
        for evaluation in (evaluation_of(one) for one in found if one.detector in TIMED)
        if not _is_shown(context.instance, evaluation)
    ]
    standing = [f"{one.dataset} {one.verdict}" for one in found if one.stands]
    return dg.SensorResult(
        asset_events=evaluations,
        skip_reason=f"detected: {', '.join(standing)}" if standing else "nothing is detected",
    )


def _is_shown(instance: dg.DagsterInstance, evaluation: dg.AssetCheckEvaluation) -> bool:
    """Return whether the UI shows this verdict, as read since the newest publication."""
    found = newest_evaluation(instance, evaluation.asset_check_key)
    if found is None:
        return False
    shown, stored_at = found
    if shown.metadata.get("verdict") != evaluation.metadata["verdict"]:
        return False
    newest = instance.get_latest_materialization_event(evaluation.asset_key)
    return newest is None or newest.timestamp < stored_at


def _now() -> datetime:
    return datetime.now(timezone.utc)
