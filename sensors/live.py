"""Requests a tick of the visits stream when data has landed that it has not ingested."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import dagster as dg

from assets.transforms.live_visits import STREAM
from orchestration import stream as streams
from patterns.error_management.checkpointer import checkpoints
from patterns.error_management.streamed_files import left_out_warnings
from resources.lake import LakeResource
from sensors import jobs, request_throttle


@dg.sensor(
    job=jobs.live,
    minimum_interval_seconds=10,
    description="Takes in visits seconds after they landed; rests while `blogdata stream` does it",
    tags={"pattern/checkpointer": ""},
)
def visits_landed(context: dg.SensorEvaluationContext, lake: LakeResource) -> dg.SensorResult:
    """Request a tick for waiting files, again after growing pauses if it failed; warn about files nothing ingests."""
    cursor = _report_left_out(context, lake)
    if streams.is_running(lake.lake, STREAM.name):
        return dg.SensorResult(skip_reason="the stream is being run", cursor=cursor)
    there = checkpoints(lake.checkpoints_path, STREAM.name)
    waiting = STREAM.source.pending_input(there[-1] if there and there[-1].identity else None, lake.landing_path)
    requests = [dg.RunRequest(run_key=f"{len(waiting)} files {_digest(waiting)}")] if waiting else []
    return request_throttle.request_runs(
        context.instance, requests, quiet="everything that has landed is taken in", cursor=cursor
    )


def _report_left_out(context: dg.SensorEvaluationContext, lake: LakeResource) -> str:
    """Warn about landed files that no batch can ingest, once per set; return the cursor that identifies the set."""
    found = STREAM.source.left_out(lake.landing_path)
    cursor = _digest([name for names in found.values() for name in names])
    if cursor != context.cursor:
        for line in left_out_warnings(found):
            context.log.warning(line)
    return cursor


def _digest(lines: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]
