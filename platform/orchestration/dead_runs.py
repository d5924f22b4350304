"""Ends the runs whose process died without a word: Dagster would count them as under way for good.

A run killed with -9 outside Dagster's own servers, or with the whole machine, keeps its slots in the pools, and
sensors and conditions go on waiting for its partitions. Its process is in its log, its machine in a tag; when the
process is no more, the run is reported as failed on that machine. A run of the command line has both from the moment
it is there: its process may be killed before it has begun.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Sequence

import dagster as dg
import psutil
from dagster._core.execution.context.system import PlanOrchestrationContext
from dagster._core.execution.plan.plan import ExecutionPlan
from dagster._core.execution.retries import RetryMode
from dagster._core.execution.step_dependency_config import StepDependencyConfig
from dagster._core.executor.in_process import InProcessExecutor

HOST = ".dagster/blogdata_host"
"""Tag of a run: the machine whose process it is."""
CREATOR = ".dagster/blogdata_process"
"""Tag of a run that is executed by the process which creates it: that process."""

CLOCK_SECONDS = 60.0
"""How far the clock may have been set forward since a process was noted: it then seems to have begun so much later."""
UNDER_WAY = (dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING)
"""States in which nobody but its process ends a run; of those in between, Dagster's daemon knows whether they go on."""


class _Noting(InProcessExecutor):
    """Runs all steps in one process, as Dagster's own does, and notes on which machine."""

    def execute(
        self, plan_context: PlanOrchestrationContext, execution_plan: ExecutionPlan
    ) -> Iterator[dg.DagsterEvent]:
        plan_context.instance.add_run_tags(plan_context.run_id, {HOST: socket.gethostname()})
        yield from super().execute(plan_context, execution_plan)


@dg.executor(name="in_process")
def in_process(context: dg.InitExecutorContext) -> InProcessExecutor:
    """Give the executor of every run: one process, one session, on a machine that is known."""
    return _Noting(retries=RetryMode.ENABLED)


@dg.executor(name="past_faults")
def past_faults(context: dg.InitExecutorContext) -> InProcessExecutor:
    """Give the executor of runs in which a step that has handed on may still fail: those after it run all the same."""
    return _Noting(
        retries=RetryMode.ENABLED,
        step_dependency_config=StepDependencyConfig(require_upstream_step_success=False),
    )


def own() -> dict[str, str]:
    """Give the tags of a run that this process creates, and executes itself."""
    return {HOST: socket.gethostname(), CREATOR: str(os.getpid())}


def settle(instance: dg.DagsterInstance) -> Sequence[str]:
    """Report runs of this machine as failed whose process is no more.

    Args:
        instance: The Dagster instance.

    Returns:
        Identifiers of these runs.
    """
    here = socket.gethostname()
    dead = []
    for record in instance.get_run_records(dg.RunsFilter(statuses=list(UNDER_WAY))):
        run = record.dagster_run
        if run.tags.get(HOST, here) != here:
            continue
        processes = [*_created_by(record), *_noted(instance, run)]
        if not processes or any(_lives(pid, noted) for pid, noted in processes):
            continue
        # The last thing its process did may have been to end it.
        now = instance.get_run_by_id(run.run_id)
        if now is not None and now.status in UNDER_WAY:
            instance.report_run_failed(
                now, "the process of this run is no more: it was killed, or the machine went down"
            )
            dead.append(run.run_id)
    return dead


def _created_by(record: dg.RunRecord) -> Iterator[tuple[int, float]]:
    run = record.dagster_run
    # A run that Dagster makes to do another one again bears the tags of that.
    if CREATOR in run.tags and run.parent_run_id is None:
        yield int(run.tags[CREATOR]), record.create_timestamp.timestamp()


def _noted(instance: dg.DagsterInstance, run: dg.DagsterRun) -> Iterator[tuple[int, float]]:
    for entry in instance.all_logs(run.run_id, of_type=dg.DagsterEventType.ENGINE_EVENT):
        pid = entry.get_dagster_event().engine_event_data.metadata.get("pid")
        if pid is not None:
            yield int(str(pid.value)), entry.timestamp


def _lives(pid: int, noted: float) -> bool:
    # Numbers are given out again: a process that began well after the run had noted its own is another one.
    try:
        process = psutil.Process(pid)
        return process.status() != psutil.STATUS_ZOMBIE and process.create_time() <= noted + CLOCK_SECONDS
    except psutil.NoSuchProcess:
        return False
