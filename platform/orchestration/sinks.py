"""Turns some datasets into a Dagster asset that serves them together from a database (Transactional Writer)."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import dagster as dg
from dagster_shared.utils.warnings import BetaWarning

from orchestration.checks import LEDGER
from orchestration.concurrent_runner import pool_of
from orchestration.dataset import failure, key_of, slug
from orchestration.step import InputChanged, LakeAccess
from patterns.core.contract import Contract
from patterns.core.errors import ConfigurationError, PlatformError
from patterns.core.events import EventLog
from patterns.core.lake import DatasetMissing, Lake
from patterns.idempotency import transactional_sink
from patterns.idempotency.transactional_sink import Delivery, Part, Receipt, RowsRefused

PATTERN = "Transactional Writer"


class PartitionsRefused(PlatformError):
    """Several partitions could not be served; the others of the step are."""


def served_together(
    name: str,
    contracts: Sequence[Contract],
    *,
    description: str,
    owner: str,
    partitions_def: dg.PartitionsDefinition[str],
    automation: dg.AutomationCondition[dg.AssetKey],
) -> dg.AssetsDefinition:
    """Declare datasets that PostgreSQL serves together: each partition is replaced in one transaction.

    Args:
        name: Of the asset, as `schema.name`; the tables get the names of the datasets, in that schema.
        contracts: Of the datasets, which have the same partitions.
        description: For people.
        owner: Team that answers for it, as `team:name`.
        partitions_def: The datasets' partitions.
        automation: When it runs by itself.

    Returns:
        The asset; it needs the resources `lake` and `postgres`.
    """
    key = key_of(name)

    def asset(context: dg.AssetExecutionContext) -> Iterator[Any]:
        rows = 0
        refused: dict[str, PlatformError] = {}
        for partition in context.partition_keys:
            try:
                receipt = _deliver(context, contracts, partition)
            except PlatformError as error:
                # What will pass is waited for, and without a database there is nothing to try.
                if error.transient or isinstance(error, ConfigurationError):
                    raise failure(context, error) from error
                context.log.error(f"{partition} is not served: {error}")
                refused[partition] = error
                continue
            here = sum(receipt.rows.values())
            rows += here
            figures = {f"rows/{dataset}": count for dataset, count in receipt.rows.items()}
            shown = {"dagster/row_count": here, **figures, "batch": receipt.batch_id, "repeated": receipt.repeated}
            context.add_asset_metadata(shown, partition_key=partition)
        if refused:
            together = _all_of(refused, name)
            if any(isinstance(one, RowsRefused) for one in refused.values()):
                yield dg.AssetCheckResult(check_name=LEDGER, asset_key=key, passed=False, description=together.what)
            raise failure(context, together) from next(iter(refused.values()))
        counted = dg.AssetCheckResult(check_name=LEDGER, asset_key=key, passed=True, metadata={"rows": rows})
        yield dg.MaterializeResult(check_results=[counted])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BetaWarning)
        made: dg.AssetsDefinition = dg.asset(
            key=key,
            description=description,
            group_name=key.path[0],
            owners=[owner],
            kinds={"postgres"},
            tags={f"pattern/{slug(PATTERN)}": ""},
            deps=[key_of(contract.dataset) for contract in contracts],
            partitions_def=partitions_def,
            backfill_policy=dg.BackfillPolicy.single_run(),
            automation_condition=automation,
            pool=pool_of(name),
            required_resource_keys={"lake", "postgres"},
            check_specs=[
                dg.AssetCheckSpec(
                    LEDGER,
                    asset=key,
                    blocking=True,
                    description="The rows that are served are those of the ledger, counted before the commit",
                )
            ],
        )(asset)
    return made


def complete(events: EventLog, datasets: Sequence[str]) -> Mapping[str, Mapping[str, int]]:
    """Give the partitions that all of some datasets have, each with the newest publication of every dataset."""
    published = {dataset: events.publications(dataset) for dataset in datasets}
    keys = set.intersection(*(set(entries) for entries in published.values()))
    return {key: {dataset: published[dataset][key].version for dataset in datasets} for key in sorted(keys)}


def stale(
    lake: Lake, events: EventLog, datasets: Sequence[str], served: Mapping[tuple[str, str, str], int]
) -> list[str]:
    """Give the partitions of which a database does not have the newest publications.

    Args:
        lake: The tables' root.
        events: The event log.
        datasets: What is served together.
        served: What the database has, by dataset, id of its table, and partition.
    """
    opened = {dataset: lake.table(dataset) for dataset in datasets}
    ids = {dataset: str(table.metadata().id) for dataset, table in opened.items() if table is not None}
    return [
        key
        for key, versions in complete(events, datasets).items()
        if any(served.get((dataset, ids.get(dataset, ""), key), -1) < version for dataset, version in versions.items())
    ]


def _deliver(context: dg.AssetExecutionContext, contracts: Sequence[Contract], partition: str) -> Receipt:
    parts = [_part(context.resources.lake, contract, partition) for contract in contracts]
    delivery = Delivery(partition=partition, parts=parts, run_id=context.run.run_id)
    with context.resources.postgres.connection() as connection:
        return transactional_sink.deliver(connection, context.asset_key.path[0], delivery)


def _all_of(refused: Mapping[str, PlatformError], name: str) -> PlatformError:
    first, *others = refused.values()
    if not others:
        return first
    reasons: dict[str, list[str]] = {}
    for partition, error in refused.items():
        reasons.setdefault(error.what, []).append(partition)
    lines = "".join(f"\n    - {', '.join(partitions)}: {what}" for what, partitions in reasons.items())
    return PartitionsRefused(
        what=f"{len(refused)} partitions could not be served, the others are:{lines}",
        where=f"{name} {', '.join(refused)}",
        next_step=first.next_step,
    )


def _part(access: LakeAccess, contract: Contract, partition: str) -> Part:
    dataset = contract.dataset
    table = access.lake.table(dataset)
    entry = access.events.publications(dataset, [partition]).get(partition)
    if table is None or entry is None:
        raise DatasetMissing(
            what=f"{dataset} has not been published for {partition}",
            where=partition,
            next_step=f"materialize {dataset} for it first, or run: blogdata run",
        )
    version = table.version()
    if entry.version > version:
        raise InputChanged(
            what=f"{dataset} was published again while the step was starting",
            where=partition,
            next_step="the step is retried and reads the newer version",
        )
    batches = access.lake.batches(dataset, version, contract.partition_column or "", partition)
    return Part(
        contract=contract,
        table_id=str(table.metadata().id),
        version=entry.version,
        rows=entry.rows_out,
        batches=batches,
    )
