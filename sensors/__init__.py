"""What starts runs: the sensors for stale partitions and events, and the schedules."""

from __future__ import annotations

import dagster as dg

from sensors import jobs
from sensors.consumers import consumers_called
from sensors.external_events import start_runs
from sensors.refresh import page_files_due, whatever_is_stale, write_page_files
from sensors.schedules import schedules
from sensors.watching import detector_readings, end_dead_runs, tell_people

JOBS = (*jobs.JOBS, write_page_files)


def instigators(*, automatic: bool) -> tuple[list[dg.SensorDefinition], list[dg.ScheduleDefinition]]:
    """Build all sensors and schedules."""
    sensing = dg.DefaultSensorStatus.RUNNING if automatic else dg.DefaultSensorStatus.STOPPED
    timing = dg.DefaultScheduleStatus.RUNNING if automatic else dg.DefaultScheduleStatus.STOPPED
    requesting = [whatever_is_stale(sensing), page_files_due(sensing), consumers_called(sensing)]
    return [*requesting, detector_readings, start_runs, end_dead_runs, tell_people], schedules(timing)


__all__ = ["JOBS", "instigators"]
