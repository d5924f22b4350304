"""Computes the partitions of a task, for asset materializations and for runs of the job `refresh` alike."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import ModuleType
from typing import Any, cast

import dagster as dg

from blogdata.errors import PlatformError
from blogdata.errors.remedies import Remedy, Run
from blogdata.lake import members
from blogdata.lake.commit import ROWS, Commit
from blogdata.lake.store_faults import store_faults
from blogdata.orchestration import lost_tables
from blogdata.orchestration.checks import failed_checks, passed_checks
from blogdata.orchestration.lake_resource import LakeResource
from blogdata.orchestration.lineage import as_table, column_lineage
from blogdata.orchestration.names import ACCEPT, EVENT, asset_key
from blogdata.orchestration.step import Step
from blogdata.patterns.data_flow import single_runner
from blogdata.patterns.ingestion.full_loader import ACCEPT_SIZE
from blogdata.planning.graph import Graph, Task
from blogdata.planning.snapshot import Snapshot
from blogdata.planning.staleness import Staleness
from blogdata.publish.contract import Contract
from blogdata.publish.target import RunContext
from blogdata.publish.write_faults import AuditFailed

RESOURCES = frozenset({"spark", "lake", "deployment"})
Context = dg.AssetExecutionContext | dg.OpExecutionContext
Compute = Callable[[Step], Mapping[str, Commit]]


@dataclass(frozen=True, kw_only=True)
class Computation:
    """A function that computes and publishes partitions of a dataset and its companions."""

    dataset: str
    compute: Compute


def computes(dataset: str) -> Callable[[Compute], Computation]:
    """Register a function as the computation of a dataset; everything else about the dataset is in its contract."""

    return lambda compute: Computation(dataset=dataset, compute=compute)


def computations(modules: Sequence[ModuleType]) -> dict[str, Computation]:
    """Collect the computations that the modules declare, by main dataset."""
    found: dict[str, Computation] = {}
    for module in modules:
        for _, value in inspect.getmembers(module, lambda value: isinstance(value, Computation)):
            assert found.setdefault(value.dataset, value) is value, f"two computations of {value.dataset}"
    return found


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

    @property
    def key(self) -> dg.AssetKey:
        return asset_key(self.contract.dataset)

    @property
    def data_version(self) -> dg.DataVersion:
        """The table version. Dagster's own is a digest of code and inputs, the same for rows that landed anew."""
        return dg.DataVersion(str(self.commit.version))

    @cached_property
    def _lineage(self) -> dg.TableColumnLineage:
        return column_lineage(self.step.lake, str(self.step.landing), self.commit)

    @cached_property
    def _rows(self) -> dict[str, int]:
        dataset, column = self.contract.dataset, self.contract.partition_column
        return {} if column is None else {ROWS: self.step.lake.rows(dataset, column, self.commit.version)}

    def common(self) -> dict[str, Any]:
        """Return the metadata that is the same for all partitions."""
        shown = {"columns": as_table(self._lineage, self.contract)} if self._lineage.deps_by_column else {}
        return {
            **self._rows,
            "dagster/column_lineage": self._lineage,
            "run_publishes": f"{self.commit.dataset} version {self.commit.version}"
            + (" (already published by this run)" if self.commit.repeated else ""),
            "seconds": round(self.seconds, 2),
            "code_version": self.step.run.code_version,
            **shown,
        }

    def partitions(self) -> list[str]:
        """List the published partitions, including later executions that ran again; empty for a whole table."""
        if not self.step.partitions:
            return []
        return sorted({*self.step.partitions, *(self.commit.entries if self.contract.executed else ())})

    def materializations(self) -> Iterator[dg.AssetMaterialization]:
        """Yield one materialization event per partition.

        They have the data version but neither code version nor inputs: without these, Dagster compares the times of
        materializations, and finds a partition unsynced when an input of it was published later.
        """
        keys: list[str | None] = [*self.partitions()]
        for partition in keys or [None]:
            yield dg.AssetMaterialization(
                self.key,
                partition=partition,
                metadata={**self.commit.metadata(partition), **self.common()},
                tags={"dagster/data_version": self.data_version.value},
            )

    def checks(self) -> list[dg.AssetCheckResult]:
        """Return the check results of the publication; a ledger that does not balance fails its check."""
        return passed_checks(self.key, self.contract, self.step, self.commit)


@dataclass(kw_only=True)
class Done:
    """The publications of a step, and the errors of the other partitions."""

    publications: list[Publication] = field(default_factory=list)
    faults: dict[str, PlatformError] = field(default_factory=dict)


def compute(
    context: Context,
    code: LineageCode,
    task: Task,
    keys: Sequence[str],
    *,
    attempt: int,
    stale: Collection[str] = (),
) -> Done:
    """Compute partitions of a task in one commit per dataset; failed partitions are left out, the others published.

    Args:
        keys: Partition keys; empty for a table that is written whole.
    """
    # The others were found stale: their inputs are there.
    asked = [key for key in keys if key not in stale]
    done, access = Done(), access_of(context)
    if asked:
        planner = Staleness(graph=code.graph, look=Snapshot(access.landing_zone, access.events))
        done.faults = {**planner.unpublished(task, asked), **planner.expired(task, asked)}
    left = [key for key in keys if key not in done.faults]
    while left or not keys:
        began = time.monotonic()
        try:
            step, commits = _computed(context, code, task, left, attempt, stale)
        except PlatformError as error:
            if error.transient:
                raise
            at_fault = error.partitions & set(left)
            faults = {key: error.by_partition.get(key, error) for key in sorted(at_fault) or left or [""]}
            done.faults.update(faults)
            if not at_fault:
                break
            left = single_runner.before(left, at_fault) if task.in_order else sorted(set(left) - at_fault)
            if not left:
                break
            for fault in dict.fromkeys(faults.values()):
                keys = [key for key, of in faults.items() if of is fault]
                context.log.error(f"left out: {', '.join(keys)}: {fault}")
            continue
        seconds = time.monotonic() - began
        done.publications += [
            Publication(contract=contract, step=step, commit=commits[contract.dataset], seconds=seconds)
            for contract in task.contracts
        ]
        break
    return done


def _computed(
    context: Context, code: LineageCode, task: Task, keys: Sequence[str], attempt: int, stale: Collection[str]
) -> tuple[Step, Mapping[str, Commit]]:
    access = access_of(context)
    with context.resources.spark.guard() as spark, store_faults(task.main):
        step = Step(
            contract=task.contracts[0],
            partitions=keys,
            spark=spark,
            access=access,
            deployment=context.resources.deployment,
            run=run_context(context, code.version, attempt),
            accepted=accepted(context),
            stale=stale,
            companions=task.contracts[1:],
        )
        zone = None if ACCEPT_SIZE in step.accepted else step.landing_zone
        if zone is not None:
            lost_tables.require_inputs(step.events, task, Staleness(graph=code.graph, look=Snapshot(zone, step.events)))
        lost_tables.begin_anew(spark, access.lake, step.events, task.contracts, zone)
        commits = code.computations[task.main].compute(step)
        for commit in commits.values():
            step.events.record(commit)
    return step, commits


def refused_checks(task: Task, error: PlatformError) -> Iterator[dg.AssetCheckResult]:
    """Report the failed checks of a refused publication; nothing for other kinds of error."""
    for contract in task.contracts:
        if isinstance(error, AuditFailed) and members.dataset_of(error.dataset) == contract.dataset:
            yield from failed_checks(asset_key(contract.dataset), error)


def evaluation(result: dg.AssetCheckResult) -> dg.AssetCheckEvaluation:
    """Convert a check result to an event, for runs that do not execute the asset itself."""
    assert result.asset_key is not None
    assert result.check_name is not None
    return dg.AssetCheckEvaluation(
        asset_key=result.asset_key,
        check_name=result.check_name,
        passed=result.passed,
        metadata=result.metadata,
        severity=result.severity,
        description=result.description,
    )


def log_event(context: Context, event: dg.AssetMaterialization | dg.AssetCheckEvaluation) -> None:
    """Log an event of an asset that the current step does not execute as that asset."""
    # Dagster accepts, stores and shows check evaluations here; only its signature lacks them.
    context.log_event(event)  # type: ignore[arg-type]


def accepted(context: Context) -> frozenset[str]:
    """Return the guards that a person has lifted for this run."""
    return frozenset(filter(None, context.run.tags.get(ACCEPT, "").split(",")))


def run_context(context: Context, version: str, attempt: int | None = None) -> RunContext:
    """Return the run context that is recorded in commits; without an attempt, the first one is 1."""
    return RunContext(
        run_id=context.run.run_id,
        job=context.job_name,
        code_version=version,
        trigger=_trigger(context.run.tags),
        event=_event(context.run.tags),
        attempt=context.retry_number + 1 if attempt is None else attempt,
    )


def _event(tags: Mapping[str, str]) -> dict[str, str]:
    return {tag.removeprefix(EVENT): value for tag, value in sorted(tags.items()) if tag.startswith(EVENT)}


def _trigger(tags: Mapping[str, str]) -> str:
    if event := _event(tags):
        return f"event:{event['source']}/{event['id']}"
    for tag, name in (
        ("dagster/sensor_name", "sensor"),
        ("dagster/schedule_name", "schedule"),
        ("dagster/backfill", "backfill"),
        ("dagster/from_automation_condition", "automation"),
        ("blogdata/trigger", "command"),
    ):
        if tag in tags:
            return f"{name}:{tags[tag]}"
    return "manual"


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
