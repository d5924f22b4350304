"""Marks runs as failed whose process was killed; Dagster would show them as in progress forever.

A run killed with `kill -9` outside Dagster's own servers, or by a machine crash, keeps its pool slots, and sensors and
conditions keep waiting for its partitions. The run's log has its process id, and a tag has its host. If the process is
gone, the run is reported as failed, by that host only. A run of the command line has process id and host as tags from
its creation, because its process may be killed before the run starts.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import dagster as dg
import psutil

from blogdata.orchestration.side_by_side import SideBySide

HOST = ".dagster/blogdata_host"
"""Tag of a run: the host its process runs on."""
CREATOR = ".dagster/blogdata_process"
"""Tag of a run that its creating process executes itself: the id of that process."""

CLOCK_SECONDS = 60.0
"""Tolerated forward step of the clock since a process was logged: its start time then seems that much later."""
UNDER_WAY = (dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING)
"""States that only the run's own process ends; Dagster's daemon monitors the states in between."""


class _HostTagging(dg.Executor):
    """Tags the run with its host, then lets another executor run its steps in this process."""

    def __init__(self, inner: dg.Executor) -> None:
        self._inner = inner

    @property
    def retries(self) -> Any:
        return self._inner.retries

    def execute(self, plan_context: Any, execution_plan: Any) -> Iterator[dg.DagsterEvent]:
        plan_context.instance.add_run_tags(plan_context.run_id, {HOST: socket.gethostname()})
        yield from self._inner.execute(plan_context, execution_plan)


def _executor(name: str, at_once: int, **config: Mapping[str, Any]) -> dg.ExecutorDefinition:
    create = dg.in_process_executor.executor_creation_fn
    assert create is not None

    @dg.executor(name=name)
    def made(context: dg.InitExecutorContext) -> dg.Executor:
        alone = create(context._replace(executor_config={"retries": {"enabled": {}}, **config}))
        return _HostTagging(SideBySide(alone, at_once))

    return made


def in_process(at_once: int = 1) -> dg.ExecutorDefinition:
    """Return the default executor: one process, one Spark session, and the host in a tag."""
    return _executor("in_process", at_once)


def continue_past_failures(at_once: int = 1) -> dg.ExecutorDefinition:
    """Return the executor of `refresh`: a step runs even if an upstream step failed after yielding its output.

    Args:
        at_once: As of :func:`in_process`.
    """
    return _executor("continue_past_failures", at_once, step_dependency_config={"require_upstream_step_success": False})


def own() -> dict[str, str]:
    """Return the tags of a run that this process creates and executes itself."""
    return {HOST: socket.gethostname(), CREATOR: str(os.getpid())}


def settle(instance: dg.DagsterInstance) -> Sequence[str]:
    """Report runs of this host as failed if their process is gone.

    Returns:
        Ids of the runs that were reported.
    """
    here = socket.gethostname()
    dead = []
    for record in instance.get_run_records(dg.RunsFilter(statuses=list(UNDER_WAY))):
        run = record.dagster_run
        if run.tags.get(HOST, here) != here:
            continue
        processes = [*_created_by(record), *_logged_processes(instance, run)]
        if not processes or any(_lives(pid, logged_at) for pid, logged_at in processes):
            continue
        # Read the run again: its process may have finished it just before exiting.
        now = instance.get_run_by_id(run.run_id)
        if now is not None and now.status in UNDER_WAY:
            instance.report_run_failed(
                now, "the process of this run is no more: it was killed, or the machine went down"
            )
            dead.append(run.run_id)
    return dead


def _created_by(record: dg.RunRecord) -> Iterator[tuple[int, float]]:
    run = record.dagster_run
    # A re-execution inherits the tags of its parent run, so its process tag is not its own.
    if CREATOR in run.tags and run.parent_run_id is None:
        yield int(run.tags[CREATOR]), record.create_timestamp.timestamp()


def _logged_processes(instance: dg.DagsterInstance, run: dg.DagsterRun) -> Iterator[tuple[int, float]]:
    for entry in instance.all_logs(run.run_id, of_type=dg.DagsterEventType.ENGINE_EVENT):
        pid = entry.get_dagster_event().engine_event_data.metadata.get("pid")
        if pid is not None:
            yield int(str(pid.value)), entry.timestamp


def _lives(pid: int, logged_at: float) -> bool:
    # Process ids are reused: one that started well after the run logged its own is another process.
    try:
        process = psutil.Process(pid)
        return process.status() != psutil.STATUS_ZOMBIE and process.create_time() <= logged_at + CLOCK_SECONDS
    except psutil.NoSuchProcess:
        return False
