"""What starts runs: the sensors for stale partitions and events, and the schedules."""

from __future__ import annotations

import dagster as dg

from assets.sources import split_access_logs
from blogdata.contract.partitions import Grain
from blogdata.deliver import destinations
from blogdata.deliver.page_files import page_files
from blogdata.operate.config import Settings
from blogdata.runs.computation import LineageCode
from blogdata.runs.dataset import Calendar
from blogdata.runs.refresh_job import refresh_job
from blogdata.watch import timely_checks
from sensors import jobs
from sensors.consumers import consumers_called
from sensors.external_events import start_runs
from sensors.refresh import page_files_due, whatever_is_stale, write_page_files
from sensors.schedules import schedules
from sensors.watching import detector_readings, end_dead_runs, tell_people


def instigators(*, automatic: bool) -> tuple[list[dg.SensorDefinition], list[dg.ScheduleDefinition]]:
    """Build all sensors and schedules."""
    sensing = dg.DefaultSensorStatus.RUNNING if automatic else dg.DefaultSensorStatus.STOPPED
    timing = dg.DefaultScheduleStatus.RUNNING if automatic else dg.DefaultScheduleStatus.STOPPED
    requesting = [whatever_is_stale(sensing), page_files_due(sensing), consumers_called(sensing)]
    return [*requesting, detector_readings, start_runs, end_dead_runs, tell_people], schedules(timing)


def configured(settings: Settings, code: LineageCode, calendar: Calendar) -> dg.Definitions:
    """Define what starts runs, their jobs, and the assets and checks that these alone need."""
    sinks = destinations.configured(settings)
    sensors, schedules = instigators(automatic=settings.run_automatically)
    served = [sink.asset(calendar, code.version) for sink in sinks]
    steps = [(sink.contract, sink.step()) for sink in sinks]
    return dg.Definitions(
        assets=[*served, page_files(calendar[Grain.DAY]), *jobs.ASSETS],
        asset_checks=timely_checks.CHECKS,
        jobs=[refresh_job(code, first=split_access_logs, served=steps), *jobs.JOBS, write_page_files],
        schedules=schedules,
        sensors=sensors,
    )
