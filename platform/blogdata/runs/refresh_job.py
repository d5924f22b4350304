"""The job `refresh`: one run brings the whole lineage up to date, scattered partitions of all datasets included.

Each task is one step, in the order of the lineage. A step determines what is stale when it starts, after its upstream
steps have published, and computes all of it in one commit per dataset. A step with failed partitions yields its output
first and fails then: downstream steps run on the good partitions, and failed ones were not published.
"""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

import dagster as dg

from blogdata.contract.contract import Contract
from blogdata.patterns.data_flow.concurrent_runner import ARRIVING
from blogdata.planning.graph import Task
from blogdata.runs.computation import RESOURCES, LineageCode
from blogdata.runs.driver import Driver
from blogdata.runs.names import step_of
from blogdata.runs.refresh_request import JOB
from blogdata.runs.retries import failing_after_output

Served = tuple[Contract, dg.OpDefinition]
CONTINUE_PAST_FAILURES = dg.in_process_executor.configured(
    {"retries": {"enabled": {}}, "step_dependency_config": {"require_upstream_step_success": False}},
    name="continue_past_failures",
)
"""A step runs even if an upstream step failed after yielding its output."""


def refresh_job(code: LineageCode, *, first: dg.OpDefinition, served: Sequence[Served] = ()) -> dg.JobDefinition:
    @dg.graph(name=JOB)
    def refresh() -> None:
        landing = first()
        done: dict[str, Any] = {}
        for task in code.graph.tasks:
            names = sorted({edge.above for edge, _ in code.graph.edges(task)} & done.keys())
            above = [done[name] for name in names] or [landing]
            # Of the steps that may run, the executor takes the one of highest priority; this keeps the lineage order.
            priority = {"dagster/priority": str(-len(done))}
            step = _step(code, task).alias(step_of(task.main)).tag(priority)
            done.update(dict.fromkeys(task.datasets, step(above)))
        for contract, serve in served:
            serve.alias(step_of(contract.dataset))([done[read.dataset] for read in contract.reads])

    return refresh.to_job(
        name=JOB,
        description="Compute whatever is stale, from the landing zone to what is served: every dataset, any partitions",
        executor_def=CONTINUE_PAST_FAILURES,
        tags=ARRIVING,
    )


def op_failing_after_output(
    dataset: str, description: str, resources: Collection[str], work: Callable[[dg.OpExecutionContext], object]
) -> dg.OpDefinition:
    """Build the op of a dataset, below which steps run even if it fails; its name is not that of the asset's op."""
    made = dg.op(
        name=f"refresh__{step_of(dataset)}",
        description=description,
        required_resource_keys=set(resources),
        ins={"above": dg.In(dg.Nothing)},
        out=dg.Out(dg.Nothing),
    )
    return made(failing_after_output(work, lambda _: [dg.Output(None)]))


def _step(code: LineageCode, task: Task) -> dg.OpDefinition:
    return op_failing_after_output(
        task.main,
        f"Publish what is stale of {', '.join(task.datasets)}",
        {*RESOURCES, "request"},
        partial(Driver.run, code, task),
    )
