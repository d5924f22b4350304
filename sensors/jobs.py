"""The jobs that sensors, schedules and people start, beside the materialization of single assets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dagster as dg
from pydantic import Field

from assets.gold.visits_weekly import frozen_years
from blogdata.deliver import share, staging
from blogdata.errors import PlatformError, refuse_unknown
from blogdata.patterns.data_flow.concurrent_runner import AGAIN
from blogdata.planning.plan import ASKED, Planner
from blogdata.planning.snapshot import Snapshot
from blogdata.privacy import retention, rotate
from blogdata.runs.job import RUNS, operation, plan_table
from blogdata.runs.lake_resource import LakeResource
from blogdata.watch import ops
from blogdata.watch.data_docs import data_docs as data_docs_of_newest
from blogdata.watch.ops import maintained_tables
from blogdata.watch.profiles import profiles as profiles_of_new
from quality.contracts import CONTRACTS, GRAPH


class ReplayConfig(dg.Config):
    dataset: str = Field(description="Name as layer.table")
    partitions: str = Field(
        "",
        description="Keys, first..last, a day for its hours, several by commas, or all; empty for a table that is "
        "written whole",
    )
    only_plan: bool = Field(False, description="Only show the plan, and run nothing")


def _replay(context: dg.OpExecutionContext, config: ReplayConfig) -> Mapping[str, Any]:
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


replay = operation(
    "replay", ReplayConfig, _replay, description="Run partitions again with everything that has read them", tags=AGAIN
)


def _over(name: str, asset: dg.AssetsDefinition, what: str) -> dg.UnresolvedAssetJobDefinition:
    return dg.define_asset_job(name, selection=dg.AssetSelection.assets(asset), description=what)


freeze = _over("freeze", frozen_years, "Turn the weeks of each past year, once final, into one immutable table")
maintain = _over("maintain", maintained_tables, "Compact tables with too many small files, remove unneeded files")
data_docs = _over("data_docs", data_docs_of_newest, "Validate the newest partitions and render the Data Docs")
profiles = _over("profiles", profiles_of_new, "Profile what is new, and compare it with what was usual")
lineage = _over("lineage", ops.lineage, "Export what was published as OpenLineage events")
report = _over("report", ops.report, "Write the page about the blog and its data")
ASSETS = (frozen_years, ops.lineage, ops.report, maintained_tables, data_docs_of_newest, profiles_of_new)
_OF_ASSETS = (freeze, maintain, data_docs, profiles, lineage, report)
JOBS = (*_OF_ASSETS, replay, retention.job, share.job, staging.job, rotate.job)
"""The jobs that a person starts, too, for what they do to the data."""
