"""The Dagster definitions of a deployment: assets, checks, jobs, schedules, sensors and resources."""

from __future__ import annotations

import dagster as dg

from assets import detector_checks, landing_checks, live, ops, serving, sources
from assets.bronze.access_logs import hourly_access_logs
from assets.code import code
from assets.gold.visits_weekly import frozen_years
from assets.serving.page_files import page_files
from assets.streams import STREAMS
from blogdata import remedies
from evidence.events import EventLog
from lake.lake import Lake
from orchestration import dead_runs
from orchestration.calendar import calendar
from orchestration.dataset import AssetBuilder
from orchestration.refresh import Request
from orchestration.split_files import shared_rows
from planning import history
from quality.data_docs import data_docs
from quality.profiles import profiles
from resources import connections
from sensors import JOBS, instigators, jobs
from services.config import Settings, load


def build(settings: Settings) -> dg.Definitions:
    """Build the definitions for one deployment.

    Args:
        settings: Settings of the deployment.

    Returns:
        The definitions; partitions begin where the deployment's data begins.
    """
    sinks = serving.configured(settings)
    events = EventLog(Lake(root=str(settings.lake)))
    partitions = calendar(history.first_day(settings.landing, events, configured=settings.first_day))
    sensors, schedules = instigators(automatic=settings.run_automatically)
    return dg.Definitions(
        assets=[
            *sources.SOURCES,
            hourly_access_logs,
            *AssetBuilder(code=code(), calendar=partitions).assets(),
            *map(live.assets, STREAMS),
            *[sink.asset(partitions, code().version) for sink in sinks],
            *page_files.assets(partitions),
            frozen_years,
            ops.lineage,
            ops.report,
            ops.retired_copies,
            data_docs,
            profiles,
        ],
        asset_checks=[*landing_checks.CHECKS, *detector_checks.CHECKS],
        jobs=[jobs.refresh(sinks), *JOBS],
        schedules=schedules,
        sensors=sensors,
        resources={**connections(settings), "request": Request(), "shared_rows": shared_rows},
        # All steps share one process and one Spark session: a step has no startup cost.
        executor=dead_runs.in_process,
    )


@dg.definitions
def defs() -> dg.Definitions:
    """The definitions of the deployment this process belongs to; its errors show the commands to type."""
    remedies.register()
    return build(load())
