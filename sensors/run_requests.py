"""Requests for runs of the job `refresh`."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import shorten
from typing import Any

import dagster as dg

from blogdata.orchestration.refresh_request import JOB, Request
from blogdata.patterns.data_flow.concurrent_runner import LANE

EVERYTHING = {"blogdata/set": "everything"}
"""Tags of the sensors and schedules to switch on together for automatic operation."""
ABOUT = "blogdata/about"
"""Tag of a run: its request in a few words."""
_WIDTH = 60
UNDER_WAY = (
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
)


def run_config(request: Request) -> dict[str, Any]:
    return {"resources": {"request": {"config": request.model_dump()}}}


def refresh_request(key: str, request: Request, *, about: str, tags: Mapping[str, str]) -> dg.RunRequest:
    short = shorten(about, _WIDTH, placeholder=" …")
    return dg.RunRequest(
        run_key=key,
        job_name=JOB,
        run_config=run_config(request),
        tags={ABOUT: short, **tags},
    )


def is_under_way(instance: dg.DagsterInstance, lane: Mapping[str, str]) -> bool:
    own = dg.RunsFilter(job_name=JOB, statuses=list(UNDER_WAY), tags={LANE: lane[LANE]})
    return bool(instance.get_runs(own, limit=1))
