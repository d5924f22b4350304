"""Requests the files of the days whose page statistics were published, for the branches that lack them."""

from __future__ import annotations

import dagster as dg

from assets.serving.page_files import page_files
from blogdata.orchestration.lake_resource import LakeResource
from blogdata.orchestration.split_files import COMPARED
from blogdata.patterns.data_flow import exclusive_choice
from sensors import request_throttle
from sensors.run_requests import EVERYTHING

write_page_files = page_files.job()


def page_files_due(status: dg.DefaultSensorStatus = dg.DefaultSensorStatus.STOPPED) -> dg.SensorDefinition:
    """Build the sensor.

    Args:
        status: Whether it is on from the start.
    """
    return dg.sensor(
        name="page_files_due",
        job=write_page_files,
        minimum_interval_seconds=30,
        default_status=status,
        description="Writes the editors' files of each published day: a run per day, of the branches that lack it, and "
        "of their comparison",
        tags={"pattern/parallel-split": "", "pattern/exclusive-choice": "", **EVERYTHING},
    )(_tick)


def _tick(context: dg.SensorEvaluationContext, lake: LakeResource) -> dg.SensorResult:
    """Compare the receipts of the files with what is published; no table is opened for its rows."""
    due = page_files.due(lake.lake, lake.events, page_files.folder(lake))
    published = lake.events.publications(page_files.contract.dataset)
    requests = []
    for day, branches in due.items():
        both = len(exclusive_choice.taken(page_files.choice, day).branches) > 1
        assets = [page_files.asset_of(name) for name in dict.fromkeys((*branches, *([COMPARED] if both else [])))]
        requests.append(
            dg.RunRequest(
                run_key=f"{day} {request_throttle.digest([str(published[day].version), *branches])}",
                partition_key=day,
                asset_selection=assets,
            )
        )
    return request_throttle.request_runs(context.instance, requests, quiet="the files have every day that is published")
