"""A step of `refresh` that fails for some of its partitions lets the steps below it run; without Spark."""

from __future__ import annotations

from pathlib import Path

import dagster as dg

from blogdata.orchestration.refresh import CONTINUE_PAST_FAILURES, op_failing_after_output
from blogdata.services import config, dagster_home
from blogdata.services.dagster_internals import InMemoryJob, execute_run_iterator


def test_what_is_below_a_failed_step_runs_and_the_run_has_failed(tmp_path: Path) -> None:
    worked = list[str]()

    def work(context: dg.OpExecutionContext) -> None:
        worked.append(context.op.name)
        if context.op.name == "bad":
            raise ValueError("some of its partitions")

    bad, below = (op_failing_after_output(name, name, (), work) for name in ("bad", "below"))
    job = dg.GraphDefinition(
        name="refresh", node_defs=[bad, below], dependencies={"below": {"above": dg.DependencyDefinition("bad")}}
    ).to_job(executor_def=CONTINUE_PAST_FAILURES)
    with dagster_home.open_instance(config.load(overrides={"BLOGDATA_HOME": str(tmp_path)})) as instance:
        run = instance.create_run_for_job(job)
        events = [event.event_type for event in execute_run_iterator(InMemoryJob(job), run, instance)]
    assert worked == ["bad", "below"]
    assert events[-1] == dg.DagsterEventType.RUN_FAILURE
