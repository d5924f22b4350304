"""Requests a tick of a stream when data has landed that it has not ingested."""

from __future__ import annotations

import dagster as dg

from assets.streams import STREAMS
from blogdata.orchestration import stream as streams
from blogdata.orchestration.lake_resource import LakeResource
from blogdata.orchestration.stream import Stream
from blogdata.patterns.error_management.checkpointer import checkpoints
from blogdata.patterns.error_management.streamed_files import left_out_warnings
from sensors import jobs, request_throttle


def _landed(
    stream: Stream, job: dg.UnresolvedAssetJobDefinition, *, does: str, command: str, pattern: str
) -> dg.SensorDefinition:
    """Build the sensor of a stream: a tick for waiting files, again after growing pauses if it failed."""

    @dg.sensor(
        name=f"{stream.name}_landed",
        job=job,
        minimum_interval_seconds=10,
        description=f"{does} seconds after they landed; rests while `{command}` does it",
        tags={f"pattern/{pattern}": ""},
    )
    def landed(context: dg.SensorEvaluationContext, lake: LakeResource) -> dg.SensorResult:
        return _asked(context, lake, stream)

    return landed


visits_landed = _landed(
    STREAMS["visits"], jobs.live, does="Takes in visits", command="blogdata stream", pattern="checkpointer"
)
enriched_landed = _landed(
    STREAMS["enriched"],
    jobs.live_enriched,
    does="Joins visits with users, devices and places",
    command="blogdata stream enriched",
    pattern="static-joiner",
)
ads_landed = _landed(
    STREAMS["ads"],
    jobs.live_ads,
    does="Joins visits and ads",
    command="blogdata stream ads",
    pattern="dynamic-joiner",
)
sessions_landed = _landed(
    STREAMS["sessions"],
    jobs.live_sessions,
    does="Finds sessions of visits",
    command="blogdata stream sessions",
    pattern="stateful-sessionizer",
)
logs_landed = _landed(
    STREAMS["logs"],
    jobs.live_logs,
    does="Takes in access logs",
    command="blogdata stream logs",
    pattern="filter-interceptor",
)


def _asked(context: dg.SensorEvaluationContext, lake: LakeResource, stream: Stream) -> dg.SensorResult:
    """Request a tick if files wait; warn about files nothing ingests."""
    # A join with nothing would wait for ever.
    if absent := [source.table for source in stream.others if not (lake.landing_path / source.table).is_dir()]:
        return dg.SensorResult(skip_reason=f"no {' and no '.join(absent)} land")
    cursor = _report_left_out(context, lake, stream)
    if streams.is_running(lake.lake, stream.name):
        return dg.SensorResult(skip_reason="the stream is being run", cursor=cursor)
    there = checkpoints(lake.checkpoints_path, stream.name)
    newest = there[-1] if there and there[-1].identity else None
    waiting = sorted({file for one in stream.sources for file in one.pending_input(newest, lake.landing_path)})
    requests = [dg.RunRequest(run_key=f"{len(waiting)} files {request_throttle.digest(waiting)}")] if waiting else []
    return request_throttle.request_runs(
        context.instance, requests, quiet="everything that has landed is taken in", cursor=cursor
    )


def _report_left_out(context: dg.SensorEvaluationContext, lake: LakeResource, stream: Stream) -> str:
    """Warn about landed files that no batch can ingest, once per set; return the cursor that identifies the set."""
    found = [source.left_out(lake.landing_path) for source in stream.sources]
    cursor = request_throttle.digest([name for each in found for names in each.values() for name in names])
    if cursor != context.cursor:
        for line in [line for each in found for line in left_out_warnings(each)]:
            context.log.warning(line)
    return cursor
