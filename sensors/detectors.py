"""Evaluates the detectors every few minutes: what stopped, lags or is late fails no run, so that no run reports it."""

from __future__ import annotations

from datetime import datetime, timezone

import dagster as dg

from assets.detector_checks import TIMED, deployment_of, evaluation_of
from blogdata.orchestration.carried_checks import CARRIED
from blogdata.orchestration.checks import newest_evaluation
from blogdata.orchestration.lake_resource import LakeResource
from blogdata.planning import detectors
from blogdata.services import heartbeat
from sensors.run_requests import EVERYTHING

NAME = "detectors"


def detector_readings(status: dg.DefaultSensorStatus = dg.DefaultSensorStatus.STOPPED) -> dg.SensorDefinition:
    """Build the sensor."""
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
    heartbeat.note_tick(lake.checkpoints_path.parent, NAME)
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
    if CARRIED in shown.metadata or shown.metadata.get("verdict") != evaluation.metadata["verdict"]:
        return False
    newest = instance.get_latest_materialization_event(evaluation.asset_key)
    return newest is None or newest.timestamp < stored_at


def _now() -> datetime:
    return datetime.now(timezone.utc)
