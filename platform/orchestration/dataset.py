"""Turns a contract and a computation into a Dagster asset, so that policy is laid over all datasets in one place."""

import random
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import dagster as dg
from dagster._core.storage.tags import ASSET_PARTITION_RANGE_END_TAG, ASSET_PARTITION_RANGE_START_TAG
from dagster_shared.utils.warnings import BetaWarning

from orchestration.checks import check_specs, failed_checks, passed_checks
from orchestration.concurrent_runner import pool_of
from orchestration.lineage import as_table, column_lineage, column_schema
from orchestration.step import Step
from patterns.core.commit import Commit
from patterns.core.contract import Contract
from patterns.core.errors import PlatformError
from patterns.core.run import RunContext, code_version

MAX_RETRIES = 3
ACCEPT = "blogdata/accept"
"""Tag of a run: the guards, separated by commas, that a person has lifted for it."""
RESOURCES = frozenset({"spark", "lake", "secrets"})


def key_of(dataset: str) -> dg.AssetKey:
    """Give the asset key of a dataset: `silver.visits` is `silver/visits`."""
    return dg.AssetKey(dataset.split(".", 1))


def range_tags(keys: Sequence[str]) -> dict[str, str]:
    """Give the tags of a run that computes a gapless range of partitions; none for a table that is written whole."""
    return {ASSET_PARTITION_RANGE_START_TAG: keys[0], ASSET_PARTITION_RANGE_END_TAG: keys[-1]} if keys else {}


def dataset(
    contract: Contract,
    *,
    sources: Sequence[Path],
    deps: Sequence[dg.AssetDep] = (),
    partitions_def: dg.PartitionsDefinition[str] | None = None,
    automation: dg.AutomationCondition[dg.AssetKey] | None = None,
) -> Callable[[Callable[[Step], Commit]], dg.AssetsDefinition]:
    """Declare a dataset: the decorated function computes and publishes it.

    Args:
        contract: What is promised; name, description, owner, tags, schema and checks come from it.
        sources: Folders whose code computes it, for the code version.
        deps: Its inputs.
        partitions_def: Its partitions; None for a table that is written whole.
        automation: When it runs by itself.

    Returns:
        A decorator for a function from :class:`Step` to :class:`Commit`.
    """

    def declare(compute: Callable[[Step], Commit]) -> dg.AssetsDefinition:
        # Single-run backfills are marked beta in this Dagster; it is pinned, and the backfills are tested.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BetaWarning)
            return _declare(compute)

    def _declare(compute: Callable[[Step], Commit]) -> dg.AssetsDefinition:
        @dg.asset(
            key=key_of(contract.dataset),
            description=contract.description,
            group_name=contract.layer,
            owners=[contract.owner],
            kinds={"spark", "deltalake", contract.layer},
            tags={f"pattern/{slug(name)}": "" for name in contract.patterns},
            deps=list(deps),
            partitions_def=partitions_def,
            backfill_policy=dg.BackfillPolicy.single_run() if partitions_def else None,
            automation_condition=automation,
            pool=pool_of(contract.dataset),
            check_specs=check_specs(key_of(contract.dataset), contract),
            metadata={
                "dagster/column_schema": column_schema(contract),
                "dagster/table_name": contract.dataset,
                "patterns": list(contract.patterns),
            },
            required_resource_keys=set(RESOURCES),
            code_version=code_version(*sources),
        )
        def asset(context: dg.AssetExecutionContext) -> Iterator[Any]:
            yield from _materialize(context, contract, compute, code_version(*sources))

        return asset

    return declare


def slug(pattern: str) -> str:
    """Give a pattern's name as it appears in tags: `Late Data Detector` is `late-data-detector`."""
    return pattern.lower().replace(" ", "-").replace("(", "").replace(")", "")


def _materialize(
    context: dg.AssetExecutionContext, contract: Contract, compute: Callable[[Step], Commit], version: str
) -> Iterator[Any]:
    try:
        with context.resources.spark.guard() as spark:
            step = Step(
                contract=contract,
                partitions=context.partition_keys
                if context.has_partition_key_range or context.has_partition_key
                else (),
                spark=spark,
                access=context.resources.lake,
                secrets=context.resources.secrets,
                run=run_context(context, version),
                accepted=context.run.tags.get(ACCEPT, "").split(","),
            )
            commit = compute(step)
            step.events.record(commit)
    except PlatformError as error:
        yield from failed_checks(context.asset_key, contract, error)
        raise failure(context, error) from error
    lines, results = passed_checks(context.asset_key, contract, step, commit)
    columns = column_lineage(step.lake, str(step.landing), commit)
    metadata: dict[str, Any] = {
        "dagster/column_lineage": columns,
        "run_publishes": f"{commit.dataset} version {commit.version}"
        + (" (already published by this run)" if commit.repeated else ""),
    }
    # The figures come first on the page, the long table of the columns last.
    shown = {"columns": as_table(columns)} if columns.deps_by_column else {}
    if not step.partitions:
        metadata.update(commit.metadata(), **shown)
    for partition in step.partitions:
        context.add_asset_metadata({**commit.metadata(partition), **shown}, partition_key=partition)
    unbalanced = [line.problem for line in lines if not line.balanced]
    if unbalanced:
        context.log.error(f"the ledger of {contract.dataset} does not add up: {unbalanced}")
    yield dg.MaterializeResult(metadata=metadata, check_results=results)


def run_context(context: dg.AssetExecutionContext, version: str) -> RunContext:
    """Give who writes: the run, its job and what started it, with the version of the code."""
    return RunContext(
        run_id=context.run.run_id,
        job=context.job_name,
        code_version=version,
        trigger=_trigger(context.run.tags),
        attempt=context.retry_number + 1,
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


def failure(context: dg.AssetExecutionContext | dg.OpExecutionContext, error: PlatformError) -> Exception:
    """Retry a fault that may pass by itself, with growing, jittered waits; stop at one a person must mend."""
    if error.transient and context.retry_number < MAX_RETRIES:
        # Jitter keeps two steps that collided from colliding again.
        wait = 2**context.retry_number * random.uniform(0.5, 1.5)
        context.log.warning(f"{error}\n  (retried in {wait:.1f} s)")
        return dg.RetryRequested(max_retries=MAX_RETRIES, seconds_to_wait=wait)
    return dg.Failure(
        description=str(error),
        metadata={"what": error.what, "where": error.where, "next step": error.next_step},
        allow_retries=False,
    )
