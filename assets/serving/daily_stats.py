"""serving.daily_stats: the page and referral statistics of a day, together, in the blog's PostgreSQL."""

from collections.abc import Iterator, Mapping
from typing import Any

import dagster as dg

from assets.gold import page_stats, referral_stats
from assets.partitions import DAYS
from assets.policy import newly_updated
from orchestration.checks import LEDGER
from orchestration.concurrent_runner import pool_of
from orchestration.dataset import failure, key_of
from orchestration.replay_planner import Stage
from orchestration.step import InputChanged, LakeAccess
from patterns.core.errors import PlatformError
from patterns.core.events import EventLog
from patterns.core.lake import DatasetMissing
from patterns.core.partitions import Grain
from patterns.idempotency import transactional_sink
from patterns.idempotency.transactional_sink import Delivery, Part
from quality.contracts import CONTRACTS

DATASET = "serving.daily_stats"
SCHEMA = "serving"
SERVED = ("gold.page_stats", "gold.referral_stats")
STAGE = Stage(name="serving", datasets=(DATASET,), grain=Grain.DAY)


@dg.asset(
    key=key_of(DATASET),
    description="The page and referral statistics of a day in PostgreSQL, both or neither",
    group_name="serving",
    owners=["team:analytics"],
    kinds={"postgres"},
    tags={"pattern/transactional-writer": ""},
    deps=[page_stats, referral_stats],
    partitions_def=DAYS,
    backfill_policy=dg.BackfillPolicy.single_run(),
    automation_condition=newly_updated(),
    pool=pool_of(DATASET),
    required_resource_keys={"lake", "postgres"},
    check_specs=[
        dg.AssetCheckSpec(
            LEDGER,
            asset=key_of(DATASET),
            blocking=True,
            description="PostgreSQL has as many rows as the ledger of each dataset, counted before the commit",
        )
    ],
)
def daily_stats(context: dg.AssetExecutionContext) -> Iterator[Any]:
    """Replace each day in one transaction of the database."""
    rows = 0
    try:
        for day in context.partition_keys:
            parts = [part(context.resources.lake, dataset, day) for dataset in SERVED]
            delivery = Delivery(partition=day, parts=parts, run_id=context.run.run_id)
            with context.resources.postgres.connection() as connection:
                receipt = transactional_sink.deliver(connection, SCHEMA, delivery)
            rows += sum(receipt.rows.values())
            figures = {f"rows/{dataset}": count for dataset, count in receipt.rows.items()}
            served = {"dagster/row_count": sum(receipt.rows.values()), "batch": receipt.batch_id}
            context.add_asset_metadata({**served, **figures, "repeated": receipt.repeated}, partition_key=day)
    except PlatformError as error:
        if isinstance(error, transactional_sink.RowsRefused):
            yield _check(passed=False, description=error.what)
        raise failure(context, error) from error
    yield dg.MaterializeResult(check_results=[_check(passed=True, description=f"{rows} rows")])


def _check(*, passed: bool, description: str) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(check_name=LEDGER, asset_key=key_of(DATASET), passed=passed, description=description)


def part(access: LakeAccess, dataset: str, day: str) -> Part:
    """Give a day of a dataset as it is published now.

    Raises:
        DatasetMissing: The day has never been published.
        InputChanged: It was published again meanwhile; transient.
    """
    contract = CONTRACTS[dataset]
    version = access.lake.version(dataset)
    entry = access.events.publications(dataset, [day]).get(day)
    if version is None or entry is None:
        raise DatasetMissing(
            what=f"{dataset} has not been published for {day}",
            where=DATASET,
            next_step=f"materialize {dataset} for that day first, or run: blogdata run",
        )
    if entry.version > version:
        raise InputChanged(
            what=f"{dataset} was published again while the step was starting",
            where=f"{DATASET} {day}",
            next_step="the step is retried and reads the newer version",
        )
    batches = access.lake.batches(dataset, version, contract.partition_column or "", day)
    return Part(contract=contract, version=entry.version, rows=entry.rows_out, batches=batches)


def complete_days(events: EventLog) -> Mapping[str, Mapping[str, int]]:
    """Give the days that can be served, each with the newest publication of every dataset."""
    published = {dataset: events.publications(dataset) for dataset in SERVED}
    days = set.intersection(*(set(entries) for entries in published.values()))
    return {day: {dataset: published[dataset][day].version for dataset in SERVED} for day in sorted(days)}


def stale_days(events: EventLog, served: Mapping[tuple[str, str], int]) -> list[str]:
    """Give the days of which PostgreSQL does not have the newest publications.

    Args:
        events: The event log.
        served: What PostgreSQL has, by dataset and day.
    """
    return [
        day
        for day, versions in complete_days(events).items()
        if any(served.get((dataset, day), -1) < version for dataset, version in versions.items())
    ]
