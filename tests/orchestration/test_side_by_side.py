"""Steps of a run that are executed side by side, in threads; without Spark."""

import os
import signal
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import dagster as dg
import pytest

from blogdata.orchestration import dead_runs
from blogdata.services import config, dagster_home
from blogdata.services.dagster_internals import InMemoryJob, execute_run_iterator

PATIENCE_SECONDS = 30
Work = Callable[[dg.OpExecutionContext], None]
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
START, OUTPUT, SUCCESS, FAILURE = "STEP_START", "STEP_OUTPUT", "STEP_SUCCESS", "STEP_FAILURE"


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    """A deployment's own storage."""
    with dagster_home.open_instance(config.load(overrides={"BLOGDATA_HOME": str(tmp_path)})) as opened:
        yield opened


def op(name: str, work: Work = lambda _: None) -> dg.OpDefinition:
    """A step that does something after others."""

    @dg.op(name=name, ins={"above": dg.In(dg.Nothing)}, out=dg.Out(dg.Nothing))
    def step(context: dg.OpExecutionContext) -> None:
        work(context)

    return step


def job(
    *ops: dg.OpDefinition, at_once: int = 2, executor: Callable[[int], dg.ExecutorDefinition] = dead_runs.in_process,
    **above: tuple[str, ...],
) -> dg.JobDefinition:  # fmt: skip
    """A job of steps, each after those that are named with it."""
    return dg.GraphDefinition(
        name="steps",
        node_defs=ops,
        dependencies={
            name: {"above": dg.MultiDependencyDefinition([dg.DependencyDefinition(each) for each in names])}
            for name, names in above.items()
        },
    ).to_job(executor_def=executor(at_once))


def executed(instance: dg.DagsterInstance, steps: dg.JobDefinition, *, interrupted: bool = False) -> str:
    """Execute a job, and give the id of its run; an interrupt may come before the last stored event is seen."""
    run = instance.create_run_for_job(steps, run_config=QUIET)
    seen = defaultdict(list)
    for event in execute_run_iterator(InMemoryJob(steps), run, instance):
        if event.step_key is not None:
            seen[event.step_key].append(event.event_type_value)
    there = stored(instance, run.run_id)
    missed = {step: events for step, events in there.items() if seen[step] != events}
    assert len(missed) <= interrupted, "who looks at a run sees what is stored of each step"
    return run.run_id


def status(instance: dg.DagsterInstance, run_id: str) -> dg.DagsterRunStatus:
    """How a run has ended."""
    run = instance.get_run_by_id(run_id)
    assert run is not None
    return run.status


def stored(instance: dg.DagsterInstance, run_id: str) -> dict[str, list[str]]:
    """The stored events of each step, in their order."""
    found = defaultdict(list)
    for entry in instance.all_logs(run_id):
        if entry.is_dagster_event and entry.step_key is not None:
            found[entry.step_key].append(entry.get_dagster_event().event_type_value)
    return dict(found)


def order(instance: dg.DagsterInstance, run_id: str) -> list[tuple[str, str]]:
    """The starts and the ends of the steps, as they are stored."""
    return [
        (entry.get_dagster_event().event_type_value, entry.step_key)
        for entry in instance.all_logs(run_id)
        if entry.is_dagster_event
        and entry.step_key is not None
        and entry.get_dagster_event().event_type_value in (START, SUCCESS, FAILURE)
    ]


class Meeting:
    """Where steps wait for each other: they end only if they are executed side by side."""

    def __init__(self, steps: int) -> None:
        self._all_there = threading.Barrier(steps)

    def __call__(self, _: dg.OpExecutionContext) -> None:
        """Wait for the others."""
        self._all_there.wait(PATIENCE_SECONDS)


@pytest.mark.parametrize("at_once", [2, 3])
def test_independent_steps_run_side_by_side_and_dependent_ones_never(
    instance: dg.DagsterInstance, at_once: int
) -> None:
    names, meeting = "abc"[:at_once], Meeting(at_once)
    steps = job(*(op(name, meeting) for name in names), op("last"), at_once=at_once, last=tuple(names))
    run = executed(instance, steps)
    assert status(instance, run) == dg.DagsterRunStatus.SUCCESS
    found = order(instance, run)
    assert {kind for kind, _ in found[:at_once]} == {START}
    assert found[-2:] == [(START, "last"), (SUCCESS, "last")]


def test_no_more_steps_than_allowed_run_at_once(instance: dg.DagsterInstance) -> None:
    working, most, lock = set[str](), list[int](), threading.Lock()

    def work(context: dg.OpExecutionContext) -> None:
        with lock:
            working.add(context.op.name)
            most.append(len(working))
        time.sleep(0.05)
        with lock:
            working.remove(context.op.name)

    run = executed(instance, job(*(op(name, work) for name in "abcdef"), at_once=2))
    assert status(instance, run) == dg.DagsterRunStatus.SUCCESS
    assert max(most) == 2


@pytest.mark.parametrize("at_once", [1, 2])
@pytest.mark.parametrize("executor", [dead_runs.in_process, dead_runs.continue_past_failures])
def test_events_are_the_same_however_many_steps_run_at_once(
    instance: dg.DagsterInstance, at_once: int, executor: Callable[[int], dg.ExecutorDefinition]
) -> None:
    """Nothing stops independent steps after a failed one, and what needs it is not executed."""

    def fails(_: dg.OpExecutionContext) -> None:
        raise dg.Failure("broken", allow_retries=False)

    steps = job(
        op("bad", fails), op("below_bad"), op("good"), op("below_good"), op("below_both"),
        at_once=at_once, executor=executor,
        below_bad=("bad",), below_good=("good",), below_both=("bad", "good"),
    )  # fmt: skip
    run = executed(instance, steps)
    assert status(instance, run) == dg.DagsterRunStatus.FAILURE
    assert stored(instance, run) == {
        "bad": [START, FAILURE],
        "good": [START, OUTPUT, SUCCESS],
        "below_good": [START, OUTPUT, SUCCESS],
    }


@pytest.mark.parametrize("at_once", [1, 2])
def test_output_before_a_failure_lets_the_next_step_run(instance: dg.DagsterInstance, at_once: int) -> None:
    @dg.op(out=dg.Out(dg.Nothing))
    def bad() -> Iterator[dg.Output[None]]:
        yield dg.Output(None)
        raise dg.Failure("some of it", allow_retries=False)

    steps = job(bad, op("below"), at_once=at_once, executor=dead_runs.continue_past_failures, below=("bad",))
    run = executed(instance, steps)
    assert status(instance, run) == dg.DagsterRunStatus.FAILURE
    assert order(instance, run) == [(START, "bad"), (FAILURE, "bad"), (START, "below"), (SUCCESS, "below")]


def test_a_step_is_retried_beside_another_one(instance: dg.DagsterInstance) -> None:
    retried = threading.Event()

    def flaky(context: dg.OpExecutionContext) -> None:
        if context.retry_number == 0:
            raise dg.RetryRequested(max_retries=1, seconds_to_wait=0.2)
        retried.set()

    def slow(_: dg.OpExecutionContext) -> None:
        assert retried.wait(PATIENCE_SECONDS)

    run = executed(instance, job(op("flaky", flaky), op("slow", slow)))
    assert stored(instance, run) == {
        "flaky": [START, "STEP_UP_FOR_RETRY", "STEP_RESTARTED", OUTPUT, SUCCESS],
        "slow": [START, OUTPUT, SUCCESS],
    }
    assert status(instance, run) == dg.DagsterRunStatus.SUCCESS


@pytest.mark.parametrize(
    ("canceled", "ends"), [(True, dg.DagsterRunStatus.CANCELED), (False, dg.DagsterRunStatus.FAILURE)]
)
@pytest.mark.parametrize("asked", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_all_steps_that_run(
    instance: dg.DagsterInstance, asked: signal.Signals, canceled: bool, ends: dg.DagsterRunStatus
) -> None:
    meeting, cleaned_up = Meeting(2), list[str]()

    def endless(context: dg.OpExecutionContext) -> None:
        try:
            meeting(context)
            if context.op.name == "a":
                if canceled:
                    instance.report_run_canceling(context.run)
                os.kill(os.getpid(), asked)
            while True:
                time.sleep(0.01)
        finally:
            cleaned_up.append(context.op.name)

    run = executed(instance, job(op("a", endless), op("b", endless), op("after"), after=("a", "b")), interrupted=True)
    assert sorted(cleaned_up) == ["a", "b"]
    assert stored(instance, run) == {"a": [START, FAILURE], "b": [START, FAILURE]}
    assert status(instance, run) == ends
    assert not [thread.name for thread in threading.enumerate() if thread.name in ("a", "b")]


def test_steps_end_when_nobody_looks_at_their_run_any_more(instance: dg.DagsterInstance) -> None:
    ended, all_there = list[str](), threading.Barrier(3)

    def endless(context: dg.OpExecutionContext) -> None:
        try:
            all_there.wait(PATIENCE_SECONDS)
            while True:
                time.sleep(0.01)
        finally:
            ended.append(context.op.name)

    steps = job(op("a", endless), op("b", endless))
    events = execute_run_iterator(InMemoryJob(steps), instance.create_run_for_job(steps, run_config=QUIET), instance)
    assert next(event for event in events if event.step_key).event_type_value == START
    all_there.wait(PATIENCE_SECONDS)
    assert isinstance(events, Generator)
    events.close()
    assert sorted(ended) == ["a", "b"]


def test_steps_of_one_pool_take_turns(tmp_path: Path) -> None:
    """As with any executor: of an instance whose pools hold back steps, and not whole runs."""
    at_work = threading.Lock()

    def pooled(name: str) -> dg.OpDefinition:
        @dg.op(name=name, pool="one", out=dg.Out(dg.Nothing))
        def step() -> None:
            assert at_work.acquire(blocking=False), "another step of the pool is at work"
            time.sleep(0.2)
            at_work.release()

        return step

    with dg.instance_for_test(
        temp_dir=str(tmp_path), overrides={"concurrency": {"pools": {"granularity": "op", "default_limit": 1}}}
    ) as instance:
        run = executed(instance, job(pooled("a"), pooled("b"), op("free")))
        assert status(instance, run) == dg.DagsterRunStatus.SUCCESS


def test_of_steps_that_are_ready_the_longest_path_comes_first(instance: dg.DagsterInstance) -> None:
    went_on = threading.Event()

    # It keeps its place until the path goes on, so that one place is free when `begins` has ended.
    def wait(_: object) -> None:
        went_on.wait(PATIENCE_SECONDS)

    ops = (op("alone", wait), op("goes_on", lambda _: went_on.set()))
    steps = job(*ops, *map(op, ("other", "begins", "ends")), goes_on=("begins",), ends=("goes_on",), at_once=2)
    run = executed(instance, steps)
    starts = [name for kind, name in order(instance, run) if kind == START]
    assert starts[0] == "begins"
    assert starts.index("goes_on") < starts.index("other")


def test_steps_run_without_a_place_for_what_they_print(instance: dg.DagsterInstance, tmp_path: Path) -> None:
    (tmp_path / "dagster" / "compute_logs").write_text("no folder", encoding="utf-8")
    run = executed(instance, job(op("a"), op("b")))
    assert status(instance, run) == dg.DagsterRunStatus.SUCCESS
    assert any("What the run prints is not kept" in entry.message for entry in instance.all_logs(run))
