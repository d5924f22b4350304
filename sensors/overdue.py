"""Warns about overdue partitions, which no run would notice: none starts for a flag that never comes."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime, timezone

import dagster as dg

from assets.landing_checks import overdue_evaluation
from blogdata.orchestration.checks import newest_evaluation
from blogdata.orchestration.lake_resource import LakeResource
from blogdata.planning.arrivals import Arrivals
from quality.contracts import LANDED
from sensors.run_requests import EVERYTHING


def overdue_arrivals(status: dg.DefaultSensorStatus = dg.DefaultSensorStatus.STOPPED) -> dg.SensorDefinition:
    """Build the sensor."""
    return dg.sensor(
        name="overdue",
        minimum_interval_seconds=60,
        default_status=status,
        description="Warns, in its log and by the checks of the landing zone, of hours and deliveries that are overdue",
        tags={"pattern/readiness-marker": "", **EVERYTHING},
    )(_tick)


def _tick(context: dg.SensorEvaluationContext, lake: LakeResource) -> dg.SensorResult:
    """Warn once per set of overdue partitions, report once when it is over, and update the checks."""
    before = json.loads(context.cursor) if context.cursor else {}
    now, cursor, events, standing = _now(), {}, list[dg.AssetCheckEvaluation](), list[str]()
    for dataset, contract in LANDED.items():
        found = Arrivals.of(contract, lake.landing_zone).overdue(lake.events, now)
        cursor[dataset] = _digest(found.warning) if found.warning else ""
        changed = before.get(dataset, "") != cursor[dataset]
        if found.warning:
            standing.append(f"{len(found.keys)} of {found.table}")
            if changed:
                context.log.warning(found.warning)
        elif changed:
            context.log.info(f"{found.table}: nothing is overdue any more")
        result = overdue_evaluation(contract, found)
        if changed or _shows_another(context.instance, result):
            events.append(result)
    reason = f"overdue: {', '.join(standing)}" if standing else "nothing is overdue"
    return dg.SensorResult(asset_events=events, skip_reason=reason, cursor=json.dumps(cursor))


def _shows_another(instance: dg.DagsterInstance, result: dg.AssetCheckEvaluation) -> bool:
    """Return whether the check was never evaluated, or shows another result because a person executed it."""
    shown = newest_evaluation(instance, result.asset_check_key)
    return shown is None or shown[0].passed != result.passed


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _now() -> datetime:
    return datetime.now(timezone.utc)
