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
from patterns.core import members
from patterns.core.commit import Commit
from patterns.core.contract import Contract
from patterns.core.errors import PlatformError
from patterns.core.run import RunContext, code_version
from patterns.core.store_faults import store_faults
from patterns.idempotency.transactional_writer import Together
from patterns.quality.write_faults import AuditFailed

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
        def asset(context: dg.AssetExecutionContext) -> Iterator[Any]:
            yield from _materialize(context, [contract], compute, code_version(*sources))

        made: dg.AssetsDefinition = dg.asset(
            **_described(contract, sources),
            deps=list(deps),
            partitions_def=partitions_def,
            automation_condition=automation,
            check_specs=check_specs(key_of(contract.dataset), contract),
            **_run_as(contract, partitions_def),
        )(asset)
        return made

    return declare


def datasets_together(
    contracts: Sequence[Contract],
    *,
    sources: Sequence[Path],
    deps: Sequence[dg.AssetDep] = (),
    partitions_def: dg.PartitionsDefinition[str] | None = None,
    automation: dg.AutomationCondition[dg.AssetKey] | None = None,
) -> Callable[[Callable[[Step], Together]], dg.AssetsDefinition]:
    """Declare datasets that appear together: the decorated function computes and publishes all of them, always.

    Args:
        contracts: Of the main dataset, then of those that appear with it.
        sources: As for :func:`dataset`.
        deps: Their inputs.
        partitions_def: Their partitions.
        automation: When they run by themselves.

    Returns:
        A decorator for a function from :class:`Step` to :class:`Together`.
    """
    main = contracts[0]

    def declare(compute: Callable[[Step], Together]) -> dg.AssetsDefinition:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BetaWarning)
            return _declare(compute)

    def _declare(compute: Callable[[Step], Together]) -> dg.AssetsDefinition:
        @dg.multi_asset(
            name="__".join(key_of(main.dataset).path),
            specs=[
                # One asks for all: what starts the main dataset starts the others.
                dg.AssetSpec(
                    **_described(contract, sources),
                    deps=[*deps, *([] if contract is main else [dg.AssetDep(key_of(main.dataset))])],
                    automation_condition=automation if contract is main else None,
                )
                for contract in contracts
            ],
            partitions_def=partitions_def,
            check_specs=[spec for each in contracts for spec in check_specs(key_of(each.dataset), each)],
            **_run_as(main, partitions_def),
        )
        def assets(context: dg.AssetExecutionContext) -> Iterator[Any]:
            yield from _materialize(context, contracts, compute, code_version(*sources))

        return assets

    return declare


def _described(contract: Contract, sources: Sequence[Path]) -> dict[str, Any]:
    return {
        "key": key_of(contract.dataset),
        "description": contract.description,
        "group_name": contract.layer,
        "owners": [contract.owner],
        "kinds": {"spark", "deltalake", contract.layer},
        "tags": {f"pattern/{slug(name)}": "" for name in contract.patterns},
        "metadata": {
            "dagster/column_schema": column_schema(contract),
            "dagster/table_name": contract.dataset,
            "patterns": list(contract.patterns),
        },
        "code_version": code_version(*sources),
    }


def _run_as(contract: Contract, partitions_def: dg.PartitionsDefinition[str] | None) -> dict[str, Any]:
    return {
        "backfill_policy": dg.BackfillPolicy.single_run() if partitions_def else None,
        "pool": pool_of(contract.dataset),
        "required_resource_keys": set(RESOURCES),
    }


def slug(pattern: str) -> str:
    """Give a pattern's name as it appears in tags: `Late Data Detector` is `late-data-detector`."""
    return pattern.lower().replace(" ", "-").replace("(", "").replace(")", "")


def _materialize(
    context: dg.AssetExecutionContext,
    contracts: Sequence[Contract],
    compute: Callable[[Step], Commit | Together],
    version: str,
) -> Iterator[Any]:
    try:
        with context.resources.spark.guard() as spark:
            step = Step(
                contract=contracts[0],
                partitions=context.partition_keys
                if context.has_partition_key_range or context.has_partition_key
                else (),
                spark=spark,
                access=context.resources.lake,
                secrets=context.resources.secrets,
                run=run_context(context, version),
                accepted=context.run.tags.get(ACCEPT, "").split(","),
            )
            with store_faults(contracts[0].dataset):
                done = compute(step)
                commits = done.commits if isinstance(done, Together) else {done.dataset: done}
                for commit in commits.values():
                    step.events.record(commit)
    except PlatformError as error:
        for contract in contracts:
            if isinstance(error, AuditFailed) and members.dataset_of(error.dataset) == contract.dataset:
                yield from failed_checks(key_of(contract.dataset), contract, error)
        raise failure(context, error) from error
    for contract in contracts:
        yield _result(context, contract, step, commits[contract.dataset])


def _result(
    context: dg.AssetExecutionContext, contract: Contract, step: Step, commit: Commit
) -> dg.MaterializeResult[Any]:
    key = key_of(contract.dataset)
    lines, results = passed_checks(key, contract, step, commit)
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
        context.add_asset_metadata({**commit.metadata(partition), **shown}, asset_key=key, partition_key=partition)
    for partition in sorted(set(commit.entries) - set(step.partitions) if contract.executed else ()):
        # Executions that had to follow those that were asked for.
        context.log_event(dg.AssetMaterialization(key, partition=partition, metadata=commit.metadata(partition)))
    unbalanced = [line.problem for line in lines if not line.balanced]
    if unbalanced:
        context.log.error(f"the ledger of {contract.dataset} does not add up: {unbalanced}")
    return dg.MaterializeResult(asset_key=key, metadata=metadata, check_results=results)


def run_context(context: dg.AssetExecutionContext, version: str) -> RunContext:
    """Give the run as commits name it.

    Args:
        context: Of the step.
        version: Of the code that computes the dataset.
    """
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
