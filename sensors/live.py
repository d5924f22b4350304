"""Ticks the stream of visits when something has landed that it has not taken in."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence

import dagster as dg

from assets.transforms.live_visits import STREAM
from orchestration import stream as streams
from patterns.error_management.checkpointer import checkpoints
from patterns.ingestion.streamed_files import told_misnamed
from resources.lake import LakeResource
from sensors import jobs

WAITING = "blogdata/waiting"
"""Tag of a run: what waited when it was asked for."""
_PAUSE_SECONDS = 60.0
_DOUBLED_AT_MOST = 6


@dg.sensor(
    job=jobs.live,
    minimum_interval_seconds=10,
    description="Takes in visits seconds after they landed; rests while `blogdata stream` does it",
    tags={"pattern/checkpointer": ""},
)
def visits_landed(context: dg.SensorEvaluationContext, lake: LakeResource) -> dg.SensorResult:
    """Ask for a tick for what waits, and after growing pauses again when that has failed; name what nobody takes in."""
    cursor = _report_misnamed(context, lake)
    if streams.is_running(lake.lake, STREAM.name):
        return dg.SensorResult(skip_reason="the stream is being run", cursor=cursor)
    there = checkpoints(lake.checkpoints_path, STREAM.name)
    waiting = STREAM.source.waiting(there[-1] if there and there[-1].identity else None, lake.landing_path)
    if not waiting:
        return dg.SensorResult(skip_reason="everything that has landed is taken in", cursor=cursor)
    key = f"{len(waiting)} files {_digest(waiting)}"
    asked = context.instance.get_run_records(dg.RunsFilter(tags={WAITING: key}))
    reason = _reason_to_wait(asked)
    if reason:
        return dg.SensorResult(skip_reason=reason, cursor=cursor)
    request = dg.RunRequest(run_key=f"{key}, {len(asked) + 1}", tags={WAITING: key})
    return dg.SensorResult(run_requests=[request], cursor=cursor)


def _reason_to_wait(asked: Sequence[dg.RunRecord]) -> str | None:
    """Say why the same files are not asked for once more; None: they are."""
    if not asked:
        return None
    statuses = {record.dagster_run.status for record in asked}
    if dg.DagsterRunStatus.SUCCESS in statuses or not all(record.dagster_run.is_finished for record in asked):
        return "what waits has been asked for"
    # What made it fail may be mended out of sight, by a disk that has room again; but not every ten seconds.
    pause = _PAUSE_SECONDS * 2 ** min(len(asked) - 1, _DOUBLED_AT_MOST)
    left = max(record.update_timestamp.timestamp() for record in asked) + pause - _now()
    if left <= 0:
        return None
    return f"{len(asked)} runs for what waits have failed; the next one is asked for in {left:.0f} s"


def _report_misnamed(context: dg.SensorEvaluationContext, lake: LakeResource) -> str:
    """Warn of landed files that no batch can have, once for each set of them; give the cursor that remembers it."""
    found = STREAM.source.misnamed(lake.landing_path)
    cursor = _digest(found)
    if found and cursor != context.cursor:
        context.log.warning(told_misnamed(found))
    return cursor


def _digest(lines: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def _now() -> float:
    return time.time()
