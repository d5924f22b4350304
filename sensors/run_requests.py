"""Requests for runs of the job `refresh`."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from textwrap import shorten

import dagster as dg

from blogdata.patterns.data_flow.concurrent_runner import LANE
from blogdata.runs.refresh_request import JOB, Request

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


def refresh_request(key: str, request: Request, *, about: str, tags: Mapping[str, str]) -> dg.RunRequest:
    config = {"resources": {"request": {"config": request.model_dump()}}}
    tags = {ABOUT: shorten(about, _WIDTH, placeholder=" …"), **tags}
    return dg.RunRequest(run_key=key, job_name=JOB, run_config=config, tags=tags)


def is_under_way(instance: dg.DagsterInstance, lane: Mapping[str, str]) -> bool:
    runs = dg.RunsFilter(job_name=JOB, statuses=list(UNDER_WAY), tags={LANE: lane[LANE]})
    return bool(instance.get_runs(runs, limit=1))


WAITING = ".dagster/blogdata_waiting"
"""Tag of a run, hidden from the list of runs: digest of the content that waited when the run was requested."""
MOST_AT_ONCE = 24
"""Runs requested per tick; the rest follows at the next tick, so that a large delivery does not flood the queue."""
_PAUSE_SECONDS = 60.0
_DOUBLED_AT_MOST = 6


def request_runs(instance: dg.DagsterInstance, waiting: Sequence[dg.RunRequest], *, quiet: str) -> dg.SensorResult:
    """Request runs, except those under way and those whose last run ended a short while ago."""
    requests: list[dg.RunRequest] = []
    reasons: list[str] = []
    asked: dict[str, list[dg.RunRecord]] = defaultdict(list)
    keys = [str(request.run_key) for request in waiting]
    for record in instance.get_run_records(dg.RunsFilter(tags={WAITING: keys})):
        asked[record.dagster_run.tags[WAITING]].append(record)
    for request in waiting:
        before = asked.get(str(request.run_key), ())
        reason = _reason_to_wait(before)
        if reason is not None:
            reasons.append(reason)
        elif len(requests) < MOST_AT_ONCE:
            # Dagster starts one run per key: a tick that died before its runs were recorded requests the same again.
            key, tags = f"{request.run_key}, {len(before) + 1}", {**request.tags, WAITING: str(request.run_key)}
            requests.append(request.with_replaced_attrs(run_key=key, tags=tags))
    reason = f"{len(reasons)} wait; the first: {reasons[0]}" if len(reasons) > 1 else "".join(reasons) or quiet
    return dg.SensorResult(run_requests=requests, skip_reason=None if requests else reason)


def _reason_to_wait(asked: Sequence[dg.RunRecord]) -> str | None:
    if not asked:
        return None
    if not all(record.dagster_run.is_finished for record in asked):
        return "what waits has been asked for"
    # The cause may disappear unnoticed, such as a full disk: retry, but not every ten seconds.
    pause = _PAUSE_SECONDS * 2 ** min(len(asked) - 1, _DOUBLED_AT_MOST)
    left = max(record.update_timestamp.timestamp() for record in asked) + pause - _now()
    if left <= 0:
        return None
    return f"{len(asked)} runs for what waits have ended; the next one is asked for in {left:.0f} s"


def _now() -> float:
    return time.time()
