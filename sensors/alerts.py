"""Tells people what stands, every minute, through the channels of the settings."""

from __future__ import annotations

import dagster as dg

from alerts.sending import AlertsNotSent
from orchestration import alerting
from quality.contracts import GRAPH
from resources.alerting import AlertingResource


@dg.sensor(
    name="alerts",
    minimum_interval_seconds=60,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Sends what waits for a person, is overdue or otherwise stands to the channels of [[alerts]]",
)
def tell_people(context: dg.SensorEvaluationContext, alerting_resource: AlertingResource) -> dg.SkipReason:
    """Send what is due; a channel that fails makes the tick fail, so that its error is seen."""
    settings = alerting_resource.settings()
    if not settings.alerts.channels:
        return dg.SkipReason("no channel is configured: [[alerts]] in blogdata.toml")
    done = alerting.tell(settings, GRAPH)
    if done.failures:
        raise AlertsNotSent(done.failures)
    paused = "".join(f"; channel {one.channel} has failed and is tried again later" for one in done.paused)
    return dg.SkipReason(f"{done.sent} messages sent{paused}")
