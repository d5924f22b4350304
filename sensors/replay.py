"""The job `replay`: partitions are computed again, with everything that has read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dagster as dg
from pydantic import Field

from blogdata.errors import PlatformError, refuse_unknown
from blogdata.patterns.data_flow.concurrent_runner import AGAIN
from blogdata.planning.plan import ASKED, Planner
from blogdata.planning.snapshot import Snapshot
from blogdata.runs.job import RUNS, operation, plan_table
from blogdata.runs.lake_resource import LakeResource
from quality.contracts import CONTRACTS, GRAPH


class ReplayConfig(dg.Config):
    dataset: str = Field(description="Name as layer.table")
    partitions: str = Field(
        "",
        description="Keys, first..last, a day for its hours, several by commas, or all; empty for a table that is "
        "written whole",
    )
    only_plan: bool = Field(False, description="Only show the plan, and run nothing")


def replay(context: dg.OpExecutionContext, config: ReplayConfig) -> Mapping[str, Any]:
    access: LakeResource = context.resources.lake
    refuse_unknown([config.dataset], CONTRACTS, where="dataset")
    planner = Planner(graph=GRAPH, look=Snapshot(access.landing_zone, access.events))
    keys = planner.resolve_keys(config.dataset, config.partitions or None)
    planned = planner.plan_of_replay({config.dataset: dict.fromkeys(keys, ASKED)})
    if planned.refused and not planned.runs:
        raise planned.refused[0]
    result: dict[str, Any] = {"datasets": len(planned.runs), **plan_table(planned.runs)}
    if planned.refused:
        result["left out"] = "\n".join(map(str, planned.refused))
        context.log.error(result["left out"])
    if not config.only_plan:
        runs = getattr(context.resources, RUNS)(command="job replay")
        if problems := runs.run_plan(planned).problems:
            raise PlatformError(
                what="; ".join(problems),
                where=config.dataset,
                next_step="mend what is named, and replay it again: the whole plan runs once more",
            )
    return result


job = operation(
    "replay", ReplayConfig, replay, description="Run partitions again with everything that has read them", tags=AGAIN
)
