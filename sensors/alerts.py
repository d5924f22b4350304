"""Tells people what stands, every minute, through the channels of the settings."""

from __future__ import annotations

import dagster as dg

from blogdata.operations.alerting import tell
from blogdata.orchestration.deployment_resource import DeploymentResource
from blogdata.services import heartbeat
from blogdata.services.files import LockTimeout

NAME = "alerts"
# Dagster ends a tick after a minute.
_LOCK_SECONDS = 5.0


@dg.sensor(
    name=NAME,
    minimum_interval_seconds=60,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Sends what waits for a person, is overdue or otherwise stands to the channels of [[alerts]]",
)
def tell_people(context: dg.SensorEvaluationContext, deployment: DeploymentResource) -> dg.SkipReason:
    """Send what is due; a channel that fails makes the tick fail, so that its error is seen, and others get theirs."""
    settings = deployment.settings()
    heartbeat.note_tick(settings.home, NAME)
    if not settings.alerts.channels:
        return dg.SkipReason("no channel is configured: [[alerts]] in blogdata.toml")
    try:
        sent = tell(settings, lock_seconds=_LOCK_SECONDS)
    except LockTimeout:
        return dg.SkipReason("another process is sending what is due")
    return dg.SkipReason(f"messages sent: {sent}")
