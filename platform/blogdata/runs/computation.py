"""How a dataset is computed, what a computation has published, and the run that it is a part of."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, cast

import dagster as dg

from blogdata.contract.contract import Contract
from blogdata.contract.publication import ROWS, Commit
from blogdata.errors import PlatformError
from blogdata.errors.remedies import Remedy, Run
from blogdata.patterns.observability.fine_grained_tracker import sources
from blogdata.planning.graph import Graph
from blogdata.runs.checks import failed_checks, passed_checks
from blogdata.runs.lake_resource import LakeResource
from blogdata.runs.names import EVENT, asset_key
from blogdata.runs.step import Step
from blogdata.table import members
from blogdata.table.faults import AuditFailed
from blogdata.table.lake import Lake
from blogdata.table.target import RunContext

RESOURCES = frozenset({"spark", "lake", "deployment"})
_TRIGGERS = {
    "dagster/sensor_name": "sensor",
    "dagster/schedule_name": "schedule",
    "dagster/backfill": "backfill",
    "blogdata/trigger": "command",
}
Context = dg.AssetExecutionContext | dg.OpExecutionContext
Compute = Callable[[Step], Mapping[str, Commit]]


@dataclass(frozen=True, kw_only=True)
class Computation:
    dataset: str
    compute: Compute


def computes(dataset: str) -> Callable[[Compute], Computation]:
    """Register a function as the computation of a dataset; everything else about the dataset is in its contract."""
    return lambda compute: Computation(dataset=dataset, compute=compute)


def computations(modules: Sequence[ModuleType]) -> dict[str, Computation]:
    """Collect the computations that the modules declare, by main dataset."""
    declared: dict[str, Computation] = {}
    for module in modules:
        for _, value in inspect.getmembers(module, lambda value: isinstance(value, Computation)):
            assert declared.setdefault(value.dataset, value) is value, f"two computations of {value.dataset}"
    return declared


@dataclass(frozen=True, kw_only=True)
class LineageCode:
    """The computations of a deployment, its lineage and its code version."""

    computations: Mapping[str, Computation]
    graph: Graph
    version: str


@dataclass(frozen=True, kw_only=True)
class Publication:
    """The commit of one dataset by one step; `seconds` is the duration of the whole step."""

    contract: Contract
    step: Step
    commit: Commit
    seconds: float

    def materializations(self) -> Iterator[dg.AssetMaterialization]:
        """Yield one materialization event per partition, those of later executions that ran again included.

        The data version is the table's: Dagster's own, a digest of code and inputs, is the same for rows that landed
        anew. Without code version and inputs, Dagster finds a partition unsynced when its input was published later.
        """
        step, commit, column = self.step, self.commit, self.contract.partition_column
        counts = {} if column is None else step.lake.row_counts(commit.dataset, column, commit.version)
        common: dict[str, Any] = {
            **({} if column is None else {ROWS: sum(counts.values())}),
            "dagster/column_lineage": column_lineage(step.lake, str(step.landing), commit),
            "run_publishes": f"{commit.dataset} version {commit.version}{' (again)' * commit.repeated}",
            "seconds": round(self.seconds, 2),
            "code_version": step.run.code_version,
        }
        keys = {*step.partitions, *(commit.entries if step.partitions and self.contract.executed else ())}
        for partition in sorted(keys) or [None]:
            yield dg.AssetMaterialization(
                asset_key(self.contract.dataset),
                partition=partition,
                metadata={**commit.metadata(partition), **common},
                tags={"dagster/data_version": str(commit.version)},
            )

    def report(self, context: Context) -> list[str]:
        """Log the checks, then the rows (:mod:`blogdata.runs.checks`); return the failed checks that block."""
        failed = []
        for result in passed_checks(self.contract, self.step, self.commit):
            log_event(context, result)
            if not result.passed and result.severity is dg.AssetCheckSeverity.ERROR:
                failed.append(f"{self.contract.dataset}:{result.check_name}")
        for event in self.materializations():
            log_event(context, event)
        return failed


@dataclass(kw_only=True)
class Done:
    """The publications of a step, and the errors of the other partitions."""

    publications: list[Publication] = field(default_factory=list)
    faults: dict[str, PlatformError] = field(default_factory=dict)


def ops_asset(**given: Any) -> Callable[[Callable[..., Any]], dg.AssetsDefinition]:
    """Declare a function as an asset `ops/…` of its name: an operation on the deployment, beside the lineage."""
    declare: Callable[[Callable[..., Any]], dg.AssetsDefinition]
    declare = dg.asset(key_prefix="ops", group_name="ops", owners=["team:platform"], **given)
    return declare


def log_event(context: Context, event: dg.AssetMaterialization | dg.AssetCheckEvaluation) -> None:
    """Log an event of an asset that the current step does not execute as that asset."""
    # Dagster accepts, stores and shows check evaluations here; only its signature lacks them.
    context.log_event(event)  # type: ignore[arg-type]


def report_refused(context: Context, error: PlatformError, contracts: Iterable[Contract]) -> None:
    """Log the failed checks of a refused publication of one of the datasets."""
    for contract in contracts:
        if isinstance(error, AuditFailed) and members.dataset_of(error.dataset) == contract.dataset:
            for result in failed_checks(contract, error):
                log_event(context, result)


def run_context(context: Context, version: str) -> RunContext:
    tags = context.run.tags
    event = {tag.removeprefix(EVENT): value for tag, value in sorted(tags.items()) if tag.startswith(EVENT)}
    triggers = [f"event:{event['source']}/{event['id']}"] if event else []
    triggers += [f"{name}:{tags[tag]}" for tag, name in _TRIGGERS.items() if tag in tags]
    return RunContext(
        run_id=context.run.run_id,
        job=context.job_name,
        code_version=version,
        trigger=[*triggers, "manual"][0],
        event=event,
        attempt=context.retry_number + 1,
    )


def partitions_of(context: Context, dataset: str) -> list[str]:
    if context.has_partition_key:
        # Of one that lies outside of the calendar, Dagster finds no range.
        return [context.partition_key]
    if context.has_partition_key_range:
        return list(context.partition_keys)
    raise PlatformError(
        what=f"{dataset} is computed by partitions, and the run names none",
        where=f"run {context.run.run_id}",
        next_step=Remedy("choose partitions where it is materialized; whatever is stale of all datasets: ", Run()),
    )


def access_of(context: Context) -> LakeResource:
    return cast("LakeResource", context.resources.lake)


def column_lineage(lake: Lake, landing: str, commit: Commit) -> dg.TableColumnLineage:
    return dg.TableColumnLineage(
        deps_by_column={
            column: [dg.TableColumnDep(asset_key(above.dataset), above.column) for above in columns]
            for column, columns in sources(lake, landing, commit).items()
        }
    )
