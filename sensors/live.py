"""Requests a tick of a stream when data has landed that it has not ingested."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import dagster as dg

from assets.streams import STREAMS
from orchestration import stream as streams
from orchestration.stream import Stream
from patterns.error_management.checkpointer import checkpoints
from patterns.error_management.streamed_files import left_out_warnings
from quality.contracts import streams as streams_of
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
    return _landed(context, lake, STREAMS["visits"])


@dg.sensor(
    job=jobs.live_ads,
    minimum_interval_seconds=10,
    description="Joins visits and ads seconds after both landed; rests while `blogdata stream ads` does it",
    tags={"pattern/dynamic-joiner": ""},
)
def ads_landed(context: dg.SensorEvaluationContext, lake: LakeResource) -> dg.SensorResult:
    """Request a tick for waiting files of either side, where ads land; a join with nothing would wait for ever."""
    if not (lake.landing_path / streams_of.ADS.table).is_dir():
        return dg.SensorResult(skip_reason="no ads land")
    return _landed(context, lake, STREAMS["ads"])


@dg.sensor(
    job=jobs.live_sessions,
    minimum_interval_seconds=10,
    description="Finds sessions of visits seconds after they landed; rests while `blogdata stream sessions` does it",
    tags={"pattern/stateful-sessionizer": ""},
)
def sessions_landed(context: dg.SensorEvaluationContext, lake: LakeResource) -> dg.SensorResult:
    """Request a tick for waiting files of visits."""
    return _landed(context, lake, STREAMS["sessions"])


def _landed(context: dg.SensorEvaluationContext, lake: LakeResource, stream: Stream) -> dg.SensorResult:
    cursor = _report_left_out(context, lake, stream)
    if streams.is_running(lake.lake, stream.name):
        return dg.SensorResult(skip_reason="the stream is being run", cursor=cursor)
    there = checkpoints(lake.checkpoints_path, stream.name)
    newest = there[-1] if there and there[-1].identity else None
    waiting = sorted({file for one in stream.sources for file in one.pending_input(newest, lake.landing_path)})
    requests = [dg.RunRequest(run_key=f"{len(waiting)} files {_digest(waiting)}")] if waiting else []
    return request_throttle.request_runs(
        context.instance, requests, quiet="everything that has landed is taken in", cursor=cursor
    )


def _report_left_out(context: dg.SensorEvaluationContext, lake: LakeResource, stream: Stream) -> str:
    """Warn about landed files that no batch can ingest, once per set; return the cursor that identifies the set."""
    found = [source.left_out(lake.landing_path) for source in stream.sources]
    cursor = _digest([name for each in found for names in each.values() for name in names])
    if cursor != context.cursor:
        for line in [line for each in found for line in left_out_warnings(each)]:
            context.log.warning(line)
    return cursor


def _digest(lines: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]
