"""Requests the files of the days whose page statistics were published, where they lack them."""

from __future__ import annotations

import dagster as dg

from blogdata.deliver import page_files
from blogdata.patterns.data_flow.concurrent_runner import BACKGROUND
from blogdata.runs.lake_resource import LakeResource
from sensors import run_requests
from sensors.run_requests import EVERYTHING

write_page_files = dg.define_asset_job(
    "page_files",
    selection=dg.AssetSelection.assets(page_files.KEY),
    description="The editors' files of one day",
    tags=BACKGROUND,
)


def page_files_due(status: dg.DefaultSensorStatus = dg.DefaultSensorStatus.STOPPED) -> dg.SensorDefinition:
    return dg.sensor(
        name="page_files_due",
        job=write_page_files,
        minimum_interval_seconds=30,
        default_status=status,
        description="Writes the editors' files of each published day that lack it: a run per day",
        tags={"pattern/parallel-split": "", "pattern/exclusive-choice": "", **EVERYTHING},
    )(_tick)


def _tick(context: dg.SensorEvaluationContext, lake: LakeResource) -> dg.SensorResult:
    due = page_files.due(lake.lake, lake.events, page_files.folder_of(lake))
    requests = [dg.RunRequest(run_key=f"{day} {version}", partition_key=day) for day, version in due.items()]
    return run_requests.request_runs(context.instance, requests, quiet="the files have every day that is published")
