"""Executes steps of a run side by side, in threads of one process over one Spark session.

A step mostly waits: for Spark's plan, for Delta's small jobs around a commit. Meanwhile another step whose inputs are
done can use the second core. Dagster's own executors have one step at a time in a process, or a process for each step,
which would pay for a Spark session, imports and caches of its own.

Each step stores its events itself, in its thread, as Dagster's own executor does. The thread of the run decides what
starts next, and takes an interrupt, which it raises in all steps that run.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

import dagster as dg

from blogdata.services.dagster_internals import (
    EngineEventData,
    ExecuteRunWithPlanIterable,
    InstanceConcurrencyContext,
    PlanExecutionContextManager,
    create_compute_log_file_key,
    dagster_event_sequence_for_step,
    raise_execution_interrupts,
)

_LOOK_AGAIN_SECONDS = 0.1
"""How often it is looked whether it is time for a retry, or whether a pool has a slot again."""
_ENDS_WITHIN_SECONDS = 30.0
"""How long an interrupted step may take to end; it takes the interrupt when a call into C returns."""


class SideBySide(dg.Executor):
    """Executes at most so many steps at once."""

    def __init__(self, alone: Any, at_once: int) -> None:
        self._alone = alone
        self._at_once = at_once

    @property
    def retries(self) -> Any:
        """Whether a step may be retried, as Dagster's executor has it."""
        return self._alone.retries

    def execute(self, plan_context: Any, execution_plan: Any) -> Iterator[dg.DagsterEvent]:
        """Execute a plan.

        Yields:
            The events, those of each step in their order.

        Raises:
            DagsterExecutionInterruptedError: The run was interrupted, and its steps have ended.
        """
        steps = execution_plan.step_keys_to_execute
        if min(self._at_once, len(steps)) <= 1:
            yield from self._alone.execute(plan_context, execution_plan)
            return
        began = time.monotonic()
        # By the process in these events a run whose process was killed is found.
        yield dg.DagsterEvent.engine_event(
            plan_context,
            f"Executing steps in process (pid: {os.getpid()}), at most {self._at_once} at once",
            EngineEventData.in_process(os.getpid(), steps),
        )
        yield from ExecuteRunWithPlanIterable(
            execution_plan=execution_plan,
            iterator=partial(_executed, at_once=self._at_once),
            execution_context_manager=PlanExecutionContextManager(
                job=plan_context.job,
                retry_mode=plan_context.retry_mode,
                execution_plan=execution_plan,
                run_config=plan_context.run_config,
                dagster_run=plan_context.dagster_run,
                instance=plan_context.instance,
                raise_on_error=plan_context.raise_on_error,
                output_capture=plan_context.output_capture,
                step_dependency_config=self._alone.step_dependency_config,
            ),
        )
        yield dg.DagsterEvent.engine_event(
            plan_context,
            f"Finished steps in process (pid: {os.getpid()}) in {time.monotonic() - began:.1f} s",
            EngineEventData.in_process(os.getpid(), steps),
        )


def _executed(job_context: Any, execution_plan: Any, *, at_once: int) -> Iterator[dg.DagsterEvent]:
    with (
        InstanceConcurrencyContext(job_context.instance, job_context.dagster_run) as slots,
        execution_plan.start(
            retry_mode=job_context.retry_mode,
            sort_key_fn=_longest_path_first(execution_plan),
            max_concurrent=at_once,
            instance_concurrency_context=slots,
            step_dependency_config=job_context.step_dependency_config,
        ) as active,
        ExitStack() as until,
    ):
        yield _captured(job_context, execution_plan, until)
        yield from _Steps(job_context, active).executed()
        try:
            until.close()
        except Exception as error:  # noqa: BLE001 - as below
            yield _not_kept(job_context, error)


def _captured(job_context: Any, execution_plan: Any, until: ExitStack) -> dg.DagsterEvent:
    """Put what the process prints into the run's files."""
    logs = job_context.instance.compute_log_manager
    key = logs.build_log_key_for_run(job_context.run_id, create_compute_log_file_key())  # type: ignore[no-untyped-call]
    try:
        context = until.enter_context(logs.capture_logs(key))
    except Exception as error:  # noqa: BLE001 - without these files the run goes on, as with Dagster's executors
        return _not_kept(job_context, error)
    steps = [step.key for step in execution_plan.get_steps_to_execute_in_topo_order()]
    event: dg.DagsterEvent = dg.DagsterEvent.capture_logs(job_context, steps, key, context)
    return event


def _not_kept(job_context: Any, error: Exception) -> dg.DagsterEvent:
    event: dg.DagsterEvent = dg.DagsterEvent.engine_event(
        job_context, f"What the run prints is not kept: {error}", EngineEventData()
    )
    return event


def _longest_path_first(plan: Any) -> Callable[[Any], tuple[int, int]]:
    """Return the sort key of steps that may start: first those that most steps in a row wait for, then by priority."""
    above = plan.get_executable_step_deps()
    path = Counter[str]()
    for step in reversed(plan.get_steps_to_execute_in_topo_order()):
        for key in above[step.key]:
            path[key] = max(path[key], path[step.key] + 1)
    return lambda step: (-path[step.key], -int(step.tags.get("dagster/priority", 0)))


@dataclass(kw_only=True)
class _Running:
    """A step under way: its thread, and its events up to now."""

    thread: Thread
    seen: list[dg.DagsterEvent] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class _Ended:
    """The end of a step, with the error that it raises further."""

    error: BaseException | None


class _Steps:
    """The steps of one run."""

    def __init__(self, job_context: Any, active: Any) -> None:
        self._job_context = job_context
        self._active = active
        self._running: dict[str, _Running] = {}
        self._reports: SimpleQueue[tuple[str, dg.DagsterEvent | _Ended]] = SimpleQueue()

    def executed(self) -> Iterator[dg.DagsterEvent]:
        """Execute all steps; an error that a step raises further ends the others."""
        try:
            while not self._active.is_complete:
                self._start()
                yield from self._active.concurrency_event_iterator(self._job_context)
                yield from self._reported()
                yield from self._active.plan_events_iterator(self._job_context)
        except GeneratorExit:
            self._end_early()
            raise
        except BaseException:
            # What they have stored is shown, too: among it that the steps were interrupted.
            yield from self._end_early()
            raise

    def _start(self) -> None:
        for step in self._active.get_steps_to_execute():
            context = self._job_context.for_step(step, self._active.get_known_state())
            # Each in its own copy of the context variables, as if it were the only step.
            thread = Thread(target=copy_context().run, args=(self._work, context), name=step.key, daemon=True)
            self._running[step.key] = _Running(thread=thread)
            thread.start()

    def _work(self, step_context: Any) -> None:
        key, error = step_context.step.key, None
        events: Any = dagster_event_sequence_for_step(step_context)
        try:
            for event in events:
                self._reports.put((key, event))
        except BaseException as raised:  # noqa: BLE001 - raised again in the thread of the run
            error = raised
            # An interrupt between two events has ended nothing yet.
            with suppress(BaseException):
                self._reports.put((key, events.throw(raised)))
                events.close()
        self._reports.put((key, _Ended(error=error)))

    def _reported(self) -> Iterator[dg.DagsterEvent]:
        """Wait for the next report, and take it in: a step's events count when it has ended, not while it works."""
        try:
            with raise_execution_interrupts():
                key, report = self._reports.get(timeout=_LOOK_AGAIN_SECONDS)
        except Empty:
            return
        if isinstance(report, dg.DagsterEvent):
            self._running[key].seen.append(report)
            yield report
            return
        for event in self._running.pop(key).seen:
            self._active.handle_event(event)
        if report.error is not None:
            raise report.error
        self._active.verify_complete(self._job_context, key)

    def _end_early(self) -> Sequence[dg.DagsterEvent]:
        """Interrupt the steps that run, and return the events that they store while they end."""
        until = time.monotonic() + _ENDS_WITHIN_SECONDS
        threads = [running.thread for running in self._running.values()]
        for thread in threads:
            _interrupt(thread)
        # A second interrupt ends the wait.
        with raise_execution_interrupts():
            for thread in threads:
                thread.join(max(0.0, until - time.monotonic()))
        left = []
        while not self._reports.empty():
            left.append(self._reports.get()[1])
        return [report for report in left if isinstance(report, dg.DagsterEvent)]


def _interrupt(thread: Thread) -> None:
    """Raise an interrupt in a thread: at its next instruction, or when the call that it is in returns."""
    if thread.is_alive():
        error = ctypes.py_object(dg.DagsterExecutionInterruptedError)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), error)
