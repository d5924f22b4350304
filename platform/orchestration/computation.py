"""Computes the partitions of a task, whoever asked for them: a person in the UI, or a run over the whole lineage."""

from __future__ import annotations

import inspect
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import ModuleType
from typing import Any

import dagster as dg

from errors import PlatformError
from lake import members
from lake.commit import Commit
from lake.store_faults import store_faults
from orchestration.checks import failed_checks, passed_checks
from orchestration.lineage import as_table, column_lineage
from orchestration.names import ACCEPT, key_of
from orchestration.step import LakeAccess, Step
from planning.graph import Graph, Task
from publish.contract import Contract
from publish.run import RunContext
from publish.write_faults import AuditFailed

MAX_RETRIES = 3
RESOURCES = frozenset({"spark", "lake", "secrets"})
Context = dg.AssetExecutionContext | dg.OpExecutionContext
Compute = Callable[[Step], Mapping[str, Commit]]


@dataclass(frozen=True, kw_only=True)
class Computation:
    """A function that computes and publishes partitions of a dataset, and what appears with it.

    Args:
        dataset: Name of the main dataset, as `layer.table`.
        compute: From a step to the commits it has made.
    """

    dataset: str
    compute: Compute


def computes(dataset: str) -> Callable[[Compute], Computation]:
    """Declare a function as the computation of a dataset; everything else about it is in the contract."""

    def declare(compute: Compute) -> Computation:
        return Computation(dataset=dataset, compute=compute)

    return declare


def computations(modules: Sequence[ModuleType]) -> dict[str, Computation]:
    """Collect the computations that some modules declare, by main dataset."""
    found: dict[str, Computation] = {}
    for module in modules:
        for _, value in inspect.getmembers(module, lambda value: isinstance(value, Computation)):
            assert found.setdefault(value.dataset, value) is value, f"two computations of {value.dataset}"
    return found


@dataclass(frozen=True, kw_only=True)
class Code:
    """What all computations of a deployment share.

    Args:
        computations: By main dataset.
        graph: The lineage.
        version: Digest of the code.
    """

    computations: Mapping[str, Computation]
    graph: Graph
    version: str


@dataclass(frozen=True, kw_only=True)
class Publication:
    """What one step has published of one dataset."""

    contract: Contract
    step: Step
    commit: Commit
    seconds: float

    @property
    def key(self) -> dg.AssetKey:
        """The asset."""
        return key_of(self.contract.dataset)

    @cached_property
    def _lineage(self) -> dg.TableColumnLineage:
        return column_lineage(self.step.lake, str(self.step.landing), self.commit)

    def common(self) -> dict[str, Any]:
        """Give what is the same for all partitions."""
        shown = {"columns": as_table(self._lineage)} if self._lineage.deps_by_column else {}
        return {
            "dagster/column_lineage": self._lineage,
            "run_publishes": f"{self.commit.dataset} version {self.commit.version}"
            + (" (already published by this run)" if self.commit.repeated else ""),
            "seconds": round(self.seconds, 2),
            "code_version": self.step.run.code_version,
            **shown,
        }

    def partitions(self) -> list[str]:
        """List the partitions that were published, with executions that had to follow; none of a whole table."""
        if not self.step.partitions:
            return []
        return sorted({*self.step.partitions, *(self.commit.entries if self.contract.executed else ())})

    def materializations(self) -> Iterator[dg.AssetMaterialization]:
        """Describe it as events, one a partition.

        They bear no version in Dagster's own tags: it would miss those of the inputs beside it, and call every
        dataset unsynced.
        """
        keys: list[str | None] = [*self.partitions()]
        for partition in keys or [None]:
            yield dg.AssetMaterialization(
                self.key,
                partition=partition,
                metadata={**self.commit.metadata(partition), **self.common()},
            )

    def checks(self) -> list[dg.AssetCheckResult]:
        """Judge it; an account that does not add up is an error of its check."""
        return passed_checks(self.key, self.contract, self.step, self.commit)[1]


@dataclass(kw_only=True)
class Done:
    """What became of the partitions that a task was to compute.

    Args:
        publications: What was published, dataset by dataset.
        faults: Partition to why it was not; the whole table under the key "".
    """

    publications: list[Publication] = field(default_factory=list)
    faults: dict[str, PlatformError] = field(default_factory=dict)


def compute(context: Context, code: Code, task: Task, keys: Sequence[str], *, attempt: int) -> Done:
    """Compute some partitions of a task in one commit; one at fault keeps none of the others waiting.

    Args:
        context: Of the step.
        code: What is computed, and by which code.
        task: The datasets.
        keys: Partitions; none for a table that is written whole.
        attempt: 1 for the first try.

    Returns:
        What was published and what was not.

    Raises:
        PlatformError: A transient fault; nothing of the partitions that are left was published.
    """
    done, left = Done(), list(keys)
    while left or not keys:
        began = time.monotonic()
        try:
            step, commits = _computed(context, code, task, left, attempt)
        except PlatformError as error:
            if error.transient:
                raise
            at_fault = error.partitions & set(left)
            done.faults.update(dict.fromkeys(sorted(at_fault) or left or [""], error))
            left = sorted(set(left) - at_fault) if at_fault else []
            if not left:
                break
            context.log.error(f"left out: {', '.join(sorted(at_fault))}: {error}")
            continue
        seconds = time.monotonic() - began
        done.publications += [
            Publication(contract=contract, step=step, commit=commits[contract.dataset], seconds=seconds)
            for contract in task.contracts
        ]
        break
    return done


def _computed(
    context: Context, code: Code, task: Task, keys: Sequence[str], attempt: int
) -> tuple[Step, Mapping[str, Commit]]:
    with context.resources.spark.guard() as spark:
        step = Step(
            contract=task.contracts[0],
            partitions=keys,
            spark=spark,
            access=context.resources.lake,
            secrets=context.resources.secrets,
            run=run_context(context, code.version, attempt),
            accepted=accepted(context),
        )
        with store_faults(task.main):
            commits = code.computations[task.main].compute(step)
            for commit in commits.values():
                step.events.record(commit)
    return step, commits


def refused_checks(task: Task, error: PlatformError) -> Iterator[dg.AssetCheckResult]:
    """Report the checks that a refused publication failed; other faults are no check results."""
    for contract in task.contracts:
        if isinstance(error, AuditFailed) and members.dataset_of(error.dataset) == contract.dataset:
            yield from failed_checks(key_of(contract.dataset), contract, error)


def evaluation(result: dg.AssetCheckResult) -> dg.AssetCheckEvaluation:
    """Turn a check's result into the event by which a run reports it that does not execute the asset itself."""
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


def report(context: Context, event: dg.AssetMaterialization | dg.AssetCheckEvaluation) -> None:
    """Log something about an asset that the step does not execute as that asset."""
    # Dagster takes evaluations here, and stores and shows them; only its signature does not say so.
    context.log_event(event)  # type: ignore[arg-type]


def accepted(context: Context) -> frozenset[str]:
    """Give the guards that a person has lifted for a run."""
    return frozenset(filter(None, context.run.tags.get(ACCEPT, "").split(",")))


def run_context(context: Context, version: str, attempt: int | None = None) -> RunContext:
    """Give the run as commits name it.

    Args:
        context: Of the step.
        version: Of the code that computes the dataset.
        attempt: 1 for the first try; None: as Dagster counts it.
    """
    return RunContext(
        run_id=context.run.run_id,
        job=context.job_name,
        code_version=version,
        trigger=_trigger(context.run.tags),
        attempt=context.retry_number + 1 if attempt is None else attempt,
    )


def _trigger(tags: Mapping[str, str]) -> str:
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


def pause(attempt: int) -> float:
    """Give the seconds to wait before the next attempt: growing, and jittered so that two that collided part."""
    seconds: float = 2 ** (attempt - 1) * random.uniform(0.5, 1.5)
    return seconds


def failure(context: Context, error: PlatformError) -> Exception:
    """Retry a fault that may pass by itself, with growing, jittered waits; stop at one a person must mend."""
    if error.transient and context.retry_number < MAX_RETRIES:
        wait = pause(context.retry_number + 1)
        context.log.warning(f"{error}\n  (retried in {wait:.1f} s)")
        return dg.RetryRequested(max_retries=MAX_RETRIES, seconds_to_wait=wait)
    return failed(error)


def failed(error: PlatformError) -> dg.Failure:
    """Name a fault that ends a step."""
    return dg.Failure(
        description=str(error),
        metadata={"what": error.what, "where": error.where, "next step": error.next_step},
        allow_retries=False,
    )


def access_of(context: Context) -> LakeAccess:
    """Give the lake of a step."""
    found: LakeAccess = context.resources.lake
    return found
