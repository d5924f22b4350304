"""A `refresh` step whose computation is a test's, without Spark."""

from collections.abc import Callable, Mapping, Sequence

import dagster as dg

from assets.code import code
from blogdata.errors import PlatformError
from blogdata.orchestration.lake_resource import LakeResource
from blogdata.orchestration.refresh import Refresh
from blogdata.orchestration.refresh_request import Request
from blogdata.planning.graph import Task
from quality.contracts import GRAPH

MOST = 20
Work = Callable[[Sequence[str]], None]


def step(lake: LakeResource, dataset: str, work: Work, **asked: object) -> list[list[str]]:
    """Run the step of a dataset with `work` as its computation; return the partitions of each commit."""
    batches: list[list[str]] = []

    class Worked(Refresh):
        def _batch(self, task: Task, keys: Sequence[str]) -> Mapping[str, PlatformError]:
            batches.append(list(keys))
            assert len(batches) < MOST, "for ever"
            work(keys)
            return {}

    @dg.op(required_resource_keys={"lake", "request"})
    def once(context: dg.OpExecutionContext) -> None:
        Worked(context, code()).task(GRAPH.task_of(dataset))

    @dg.graph
    def alone() -> None:
        once()

    alone.execute_in_process(resources={"lake": lake, "request": Request.model_validate(asked)})
    return batches
