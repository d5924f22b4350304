"""The check `waiting`: fails while partitions of a dataset wait for a person, because they failed or are held."""

from __future__ import annotations

from collections.abc import Mapping

import dagster as dg

from errors import PlatformError
from orchestration.names import asset_key
from orchestration.step import LakeAccess
from planning import faults
from planning.graph import Graph, Task
from planning.look import Snapshot
from planning.plan import Planner
from publish.contract import Contract

WAITING = "waiting"
_NAMED = 5


def waiting_spec(key: dg.AssetKey) -> dg.AssetCheckSpec:
    """Return the check spec of a dataset."""
    return dg.AssetCheckSpec(
        WAITING,
        asset=key,
        description="No partition waits for a person: each one that failed, or is held back, was mended since",
    )


def waiting_result(access: LakeAccess, graph: Graph, contract: Contract) -> dg.AssetCheckResult:
    """Run the check of a dataset on its current state."""
    planner = Planner(graph=graph, look=Snapshot(access.landing_zone, access.events))
    return waiting_check(contract, planner.waiting(graph.task_of(contract.dataset)))


def waiting_check(contract: Contract, waiting: Mapping[str, PlatformError]) -> dg.AssetCheckResult:
    """Return the check result for known waiting partitions.

    Args:
        contract: Contract of the dataset.
        waiting: Waiting partition to its error.
    """
    named = ", ".join(key or "the table" for key in list(waiting)[:_NAMED])
    more = f" and {len(waiting) - _NAMED} more" if len(waiting) > _NAMED else ""
    reasons = dict.fromkeys(str(error) for error in waiting.values())
    return dg.AssetCheckResult(
        check_name=WAITING,
        asset_key=asset_key(contract.dataset),
        passed=not waiting,
        severity=dg.AssetCheckSeverity.ERROR,
        description=f"waiting for a person: {named}{more}" if waiting else None,
        metadata={
            "partitions": len(waiting),
            **({"reasons": dg.MetadataValue.md("\n\n".join(reasons))} if waiting else {}),
        },
    )


def note_faults(access: LakeAccess, graph: Graph, task: Task, failed: Mapping[str, PlatformError]) -> None:
    """Record the permanently failed partitions of a task in the event log; they wait until their inputs change."""
    planner = Planner(graph=graph, look=Snapshot(access.landing_zone, access.events))
    faults.record(access.events, task.main, failed, planner.stale(task))
