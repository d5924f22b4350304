"""What starts runs: readiness of what lands, late data, automation, schedules."""

import dagster as dg

from sensors import jobs
from sensors.dead_runs import end_dead_runs
from sensors.landing import access_logs_landed, devices_landed, hour_is_ready, users_landed
from sensors.late_data import late_data, watermark_moved
from sensors.live import visits_landed
from sensors.replays import replay, replay_runs
from sensors.schedules import SCHEDULES

downstream = dg.AutomationConditionSensorDefinition(
    "downstream",
    target=dg.AssetSelection.groups("bronze", "silver", "gold"),
    minimum_interval_seconds=30,
    description="Runs what lies downstream of updated data, as its automation condition says",
)
JOBS = (*jobs.JOBS, replay)
SENSORS = (
    access_logs_landed,
    hour_is_ready,
    visits_landed,
    users_landed,
    devices_landed,
    late_data,
    watermark_moved,
    replay_runs,
    end_dead_runs,
    downstream,
)
__all__ = ["JOBS", "SCHEDULES", "SENSORS"]
