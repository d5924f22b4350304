"""Requests a tick of a stream when data has landed that it has not ingested."""

from __future__ import annotations

import dagster as dg

from assets.streams import STREAMS
from blogdata.orchestration import stream as streams
from blogdata.orchestration.lake_resource import LakeResource
from blogdata.patterns.error_management.checkpointer import checkpoints
from sensors import jobs, run_requests


def _landed(name: str, job: dg.UnresolvedAssetJobDefinition, does: str, pattern: str) -> dg.SensorDefinition:
    """Build the sensor of a stream: a tick for waiting files, again after growing pauses if it failed."""
    stream = STREAMS[name]

    @dg.sensor(
        name=f"{name}_landed",
        job=job,
        minimum_interval_seconds=10,
        description=f"{does} seconds after they landed; rests while `blogdata stream {name}` does it",
        tags={f"pattern/{pattern}": ""},
    )
    def landed(context: dg.SensorEvaluationContext, lake: LakeResource) -> dg.SensorResult:
        # A join with nothing would wait for ever.
        if absent := [one.table for one in stream.sources[1:] if not (lake.landing_path / one.table).is_dir()]:
            return dg.SensorResult(skip_reason=f"no {' and no '.join(absent)} land")
        if streams.is_running(lake.lake, name):
            return dg.SensorResult(skip_reason="the stream is being run")
        there = checkpoints(lake.checkpoints_path, name)
        newest = there[-1] if there and there[-1].identity else None
        waiting = sorted({file for one in stream.sources for file in one.pending_input(newest, lake.landing_path)})
        key = f"{len(waiting)} files {run_requests.digest(waiting)}"
        requests = [dg.RunRequest(run_key=key)] if waiting else []
        return run_requests.request_runs(context.instance, requests, quiet="all that has landed is taken in")

    return landed


visits_landed = _landed("visits", jobs.live, "Takes in visits", "checkpointer")
ads_landed = _landed("ads", jobs.live_ads, "Joins visits and ads", "dynamic-joiner")
sessions_landed = _landed("sessions", jobs.live_sessions, "Finds sessions of visits", "stateful-sessionizer")
