"""The job `rotate`: everything that follows from a key is computed again, by another one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dagster as dg
from pydantic import Field

from blogdata.contract.contract import Wanted
from blogdata.errors import PlatformError, refuse_unknown
from blogdata.errors.remedies import Remedy, Rotate
from blogdata.operate.config import Settings
from blogdata.planning.plan import STALE, Planner
from blogdata.runs import deployment_keys as keys
from blogdata.runs.job import RUNS, operation, plan_table
from blogdata.runs.zone import snapshot_of
from blogdata.table.audit import FROZEN
from quality.contracts import GRAPH
from quality.keys import FOLLOWS, behind


class RotateConfig(dg.Config):
    key: str = Field(description="Name of the key: " + " or ".join(FOLLOWS))


def rotate(context: dg.OpExecutionContext, config: RotateConfig) -> Mapping[str, Any]:
    """Make another version of a key, and compute everything again that follows from it.

    If published rows follow from another key than the current one, because a rotation was interrupted or somebody
    replaced the key, no version is made: the rest is computed again by the current one.
    """
    key = config.key
    refuse_unknown([key], FOLLOWS, where="rotate", kind="key")
    settings: Settings = context.resources.deployment.settings()
    current, planner = keys.current(settings, key), _planner(settings)
    left = behind(planner.look, key, current.mark)
    wanted = left or behind(planner.look, key, None)
    _require_computable(planner, wanted)
    plan = planner.plan_of_replay(_with_stale(planner, wanted))
    if not left:
        keys.renew(settings, key, current)
    problems: list[str] = []
    if plan.runs:
        runs = getattr(context.resources, RUNS)(command="job rotate", lifted=frozenset({keys.ROTATING, FROZEN}))
        problems = runs.run_plan(plan).problems
    current = keys.current(settings, key)
    if rest := behind(_planner(settings).look, key, current.mark):
        raise PlatformError(
            what=f"{sum(map(len, rest.values())):,} partitions still follow from an earlier key: {', '.join(rest)}",
            where=key,
            next_step=Remedy("; ".join([*problems, "see to what is named, then go on: "]), Rotate(key=key)),
        )
    for problem in problems:
        context.log.error(problem)
    return {
        "result": f"all published rows follow from version {current.version} of {key}; earlier versions of the tables "
        "still do from earlier ones, until their files are removed",
        **plan_table(plan.runs),
    }


def _with_stale(planner: Planner, wanted: Wanted) -> Wanted:
    """Add published partitions that are stale: others are computed from what an interrupted rotation leaves of them."""
    stale = {
        main: {key: STALE for key in keys if key in planner.look.published(main)}
        for main, keys in planner.all_stale().items()
    }
    return {name: {**stale.get(name, {}), **wanted.get(name, {})} for name in {*stale, *wanted}}


def _planner(settings: Settings) -> Planner:
    return Planner(graph=GRAPH, look=snapshot_of(settings))


def _require_computable(planner: Planner, wanted: Wanted) -> None:
    """Refuse a rotation after which some partitions would still follow from the earlier key."""
    for dataset, partitions in wanted.items():
        if expired := planner.expired(planner.graph.task_of(dataset), partitions):
            first = min(expired)
            raise PlatformError(
                what=f"{len(expired)} partitions of {dataset} cannot be computed again, {first} for one: "
                f"{expired[first].what}",
                where=dataset,
                next_step="nothing was changed; have these rows expire, too, or keep the key",
            )


job = operation(
    "rotate",
    RotateConfig,
    rotate,
    description="Make another version of a key, and compute everything again that follows from it",
)
