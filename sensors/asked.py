"""Requests for runs of the job `refresh`."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import shorten
from typing import Any

import dagster as dg

from orchestration.refresh import JOB, Request

EVERYTHING = {"blogdata/set": "everything"}
"""Tags of what a person switches on together, so that everything runs by itself."""
ABOUT = "blogdata/about"
"""Tag of a run: what it was asked for, in a few words."""
_WIDTH = 60
UNDER_WAY = (
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
)


def configured(request: Request) -> dict[str, Any]:
    """Give the run configuration of a request."""
    return {"resources": {"request": {"config": request.model_dump()}}}


def refresh(key: str, request: Request, *, about: str, tags: Mapping[str, str] | None = None) -> dg.RunRequest:
    """Ask for a run over the lineage.

    Args:
        key: The same key starts one run.
        request: What it computes.
        about: For people who read the list of runs.
        tags: Further tags of the run.
    """
    told = shorten(about, _WIDTH, placeholder=" …")
    return dg.RunRequest(
        run_key=key,
        job_name=JOB,
        run_config=configured(request),
        tags={ABOUT: told, **(tags or {})},
    )


def is_under_way(instance: dg.DagsterInstance) -> bool:
    """Tell whether a run over the lineage is at work or about to begin."""
    return bool(instance.get_runs(dg.RunsFilter(job_name=JOB, statuses=list(UNDER_WAY)), limit=1))
