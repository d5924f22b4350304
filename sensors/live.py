"""Ticks the stream of visits when something has landed that it has not taken in."""

from __future__ import annotations

import hashlib

import dagster as dg

from assets.transforms.live_visits import STREAM
from orchestration import stream as streams
from patterns.error_management.checkpointer import checkpoints
from resources.lake import LakeResource
from sensors import jobs


@dg.sensor(
    job=jobs.live,
    minimum_interval_seconds=10,
    description="Takes in visits seconds after they landed; rests while `blogdata stream` does it",
    tags={"pattern/checkpointer": ""},
)
def visits_landed(lake: LakeResource) -> dg.SensorResult | dg.SkipReason:
    """Ask for one tick per set of files that no batch has."""
    if streams.is_running(lake.lake, STREAM.name):
        return dg.SkipReason("the stream is being run")
    there = checkpoints(lake.checkpoints_path, STREAM.name)
    unseen = STREAM.source.unseen(there[-1] if there and there[-1].identity else None, lake.landing_path)
    if not unseen:
        return dg.SkipReason("everything that has landed is in a batch")
    key = hashlib.sha256("\n".join(unseen).encode()).hexdigest()[:16]
    return dg.SensorResult(run_requests=[dg.RunRequest(run_key=f"{len(unseen)} files {key}")])
