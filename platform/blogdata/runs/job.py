"""Builds the Dagster job of an operation: one step with typed configuration, whose result is its metadata.

The configuration names datasets, roles, keys and requests. It names no folder, and nobody: it stays in Dagster's
storage, and whoever may launch a run would choose where the data goes.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar

import dagster as dg

from blogdata.planning.plan import Planned
from blogdata.runs.names import table, values_only
from blogdata.runs.retries import reported

RUNS = "runs"
"""The resource that runs the lineage in this process: it makes a :class:`blogdata.cli.pipeline.Pipeline`."""
RESOURCES = frozenset({"lake", "spark", "deployment", RUNS})
Config = TypeVar("Config", bound=dg.Config)


def operation(
    name: str,
    config: type[Config],
    do: Callable[[dg.OpExecutionContext, Config], Mapping[str, Any]],
    *,
    description: str,
    tags: Mapping[str, str] = MappingProxyType({}),
) -> dg.JobDefinition:
    @dg.op(
        name=f"do_{name}",
        description=description,
        config_schema=values_only(config),
        required_resource_keys=set(RESOURCES),
    )
    def step(context: dg.OpExecutionContext) -> None:
        with reported(context):
            context.add_output_metadata(dict(do(context, config(**context.op_config))))

    @dg.job(name=name, description=description, tags=tags)
    def made() -> None:
        step()

    return made


def plan_table(runs: Sequence[Planned]) -> dict[str, Any]:
    """Return the runs of a plan as metadata: what runs, and why."""
    rows = [
        {
            "datasets": ", ".join(run.datasets),
            "partitions": run.span,
            "why": "; ".join(f"{reason} ({count})" for reason, count in run.reasons.items()),
        }
        for run in runs
    ]
    return table("plan", rows)
