"""A `refresh` step whose computation is a test's, without Spark."""

from collections.abc import Callable, Sequence

import dagster as dg

from assets.code import code
from blogdata.planning.graph import Task
from blogdata.runs.computation import Done
from blogdata.runs.driver import Driver
from blogdata.runs.lake_resource import LakeResource
from blogdata.runs.refresh_request import Request
from quality.contracts import GRAPH

MOST = 20
Work = Callable[[Sequence[str]], Done | None]


def step(
    lake: LakeResource, dataset: str, work: Work, instance: dg.DagsterInstance | None = None, /, **asked: object
) -> list[list[str]]:
    """Run the step of a dataset with `work` as its computation; return the partitions of each commit."""
    batches: list[list[str]] = []

    class Worked(Driver):
        def _computed(self, task: Task, keys: Sequence[str]) -> Done:
            batches.append(list(keys))
            assert len(batches) < MOST, "for ever"
            return work(keys) or Done()

    @dg.op(required_resource_keys={"lake", "request"})
    def once(context: dg.OpExecutionContext) -> None:
        Worked.run(code(), GRAPH.task_of(dataset), context)

    @dg.graph
    def alone() -> None:
        once()

    alone.execute_in_process(resources={"lake": lake, "request": Request.model_validate(asked)}, instance=instance)
    return batches
