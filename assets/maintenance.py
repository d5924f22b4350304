"""ops: the maintenance of the tables, by what their logs tell of their files."""

from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime, timezone
from typing import Any

import dagster as dg
from pydantic import Field

from assets.code_version import version
from blogdata.orchestration.computation import run_context
from blogdata.orchestration.lake_resource import LakeResource
from blogdata.orchestration.metadata import table
from blogdata.orchestration.retries import failure
from blogdata.orchestration.run_values import values_only
from blogdata.orchestration.upkeep import OWN, Done, Due, Fault, Inspection, Upkeep, actions, look, maintain
from quality.contracts import EVERY

MAINTAINED = dg.AssetKey(["ops", "maintained_tables"])


class MaintenanceConfig(dg.Config):
    """What a run does."""

    only_plan: bool = Field(False, description="Only show what is due, without Spark, and change nothing")


@dg.asset(
    key=MAINTAINED,
    description="Small files that were compacted, and files that were removed because nobody needs them",
    group_name="ops",
    owners=["team:platform"],
    kinds={"spark", "deltalake"},
    tags={"pattern/compactor": ""},
    config_schema=values_only(MaintenanceConfig),
    required_resource_keys={"spark", "lake"},
)
def maintained_tables(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
    """Do what is due, and report it; a table that another run publishes is left for the next time.

    A table that cannot be read fails the run when all others are done.
    """
    config = MaintenanceConfig(**context.op_execution_context.op_config)
    access: LakeResource = context.resources.lake
    found = list(what_is_due(access) if config.only_plan else _do_what_is_due(context, access))
    faults = [one for one in found if isinstance(one, Fault)]
    for fault in faults:
        context.log.error(f"{fault.dataset} is left: {fault.error}")
    if faults:
        raise failure(context, faults[0].error)
    done, due = [one for one in found if isinstance(one, Done)], [one for one in found if isinstance(one, Due)]
    return dg.MaterializeResult(
        metadata={
            "due": len(due),
            "done": sum(not one.left for one in done),
            "left": sum(bool(one.left) for one in done),
            **table("tables", [*map(_due, due), *map(_done, done)]),
        }
    )


def _do_what_is_due(context: dg.AssetExecutionContext, access: LakeResource) -> Iterator[Done | Fault]:
    upkeep = Upkeep(
        lake=access.lake,
        events=access.events,
        now=datetime.now(timezone.utc),
        run=run_context(context, version()),
        spark=context.resources.spark.guard,
        engine=access.engine,
        probe=access.probe,
    )
    return maintain(upkeep, actions(EVERY.values()), (*EVERY.values(), *OWN))


def what_is_due(access: LakeResource) -> Iterator[Due | Fault]:
    """Find the work that is due, without Spark."""
    seen = Inspection(lake=access.lake, events=access.events, now=datetime.now(timezone.utc))
    return look(seen, actions(EVERY.values()), (*EVERY.values(), *OWN))


def _due(due: Due) -> dict[str, Any]:
    return {**asdict(due), "partitions": len(due.partitions)}


def _done(done: Done) -> dict[str, Any]:
    return {**_due(done.due), "files_after": done.files, "bytes_after": done.bytes, "left": done.left}
