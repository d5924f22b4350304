"""The check `waiting`: fails while partitions of a dataset wait for a person, because they failed or are held."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import dagster as dg

from blogdata.errors import PlatformError, shown
from blogdata.orchestration.lake_resource import LakeResource
from blogdata.orchestration.names import asset_key
from blogdata.planning import faults
from blogdata.planning.faults import by_reason
from blogdata.planning.graph import Graph, Task
from blogdata.planning.plan import Planner
from blogdata.planning.snapshot import Snapshot
from blogdata.publish.contract import Contract
from blogdata.services.dagster_internals import AssetMaterializationPlannedData

WAITING = "waiting"
_NAMED = 5
_REASONS = 3
_SHOWN_FAILED = 500
"""Failed partitions of a dataset that a run shows, the newest; there are more when a server was gone, and not they."""


def waiting_spec(key: dg.AssetKey) -> dg.AssetCheckSpec:
    return dg.AssetCheckSpec(
        WAITING,
        asset=key,
        description="No partition waits for a person: each one that failed, or is held back, was mended since",
    )


def waiting_result(access: LakeResource, graph: Graph, contract: Contract) -> dg.AssetCheckResult:
    planner = Planner(graph=graph, look=Snapshot(access.landing_zone, access.events))
    return waiting_check(contract, planner.waiting(graph.task_of(contract.dataset)))


def waiting_check(contract: Contract, waiting: Mapping[str, PlatformError]) -> dg.AssetCheckResult:
    reasons = by_reason(waiting)
    return dg.AssetCheckResult(
        check_name=WAITING,
        asset_key=asset_key(contract.dataset),
        passed=not waiting,
        severity=dg.AssetCheckSeverity.ERROR,
        description=f"waiting for a person: {_told(reasons)}" if waiting else None,
        metadata={
            "partitions": len(waiting),
            **({"reasons": dg.MetadataValue.md("\n\n".join(map(shown.markdown, reasons)))} if waiting else {}),
        },
    )


def _told(reasons: Mapping[str, Mapping[str, PlatformError]]) -> str:
    told = []
    for found in list(reasons.values())[:_REASONS]:
        error, more = next(iter(found.values())), f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
        named = ", ".join(key or "the table" for key in list(found)[:_NAMED]) + more
        told.append(f"{named}: {' '.join(f'{error.what} ({error.where}); {error.next_step}'.split())}")
    return ". ".join([*told, *([f"{len(reasons) - _REASONS} more reasons"] if len(reasons) > _REASONS else [])])


def show_failed(context: dg.OpExecutionContext, task: Task, partitions: Collection[str]) -> None:
    """Have Dagster count partitions as failed: those that a failed run has planned, and not published."""
    step = context.get_step_execution_context().step.key
    for contract in task.contracts:
        for key in sorted(partitions)[-_SHOWN_FAILED:]:
            planned = AssetMaterializationPlannedData(asset_key(contract.dataset), partition=key or None)
            event = dg.DagsterEvent.build_asset_materialization_planned_event(context.job_name, step, planned)
            context.instance.report_dagster_event(event, context.run_id)


def note_faults(access: LakeResource, graph: Graph, task: Task, failed: Mapping[str, PlatformError]) -> None:
    """Record the permanently failed partitions of a task in the event log; they wait until their inputs change."""
    planner = Planner(graph=graph, look=Snapshot(access.landing_zone, access.events))
    faults.record(access.events, task.main, failed, planner.stale(task))
