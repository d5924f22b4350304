"""Builds a Dagster asset that serves several datasets together from a database (Transactional Writer)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import dagster as dg
import psycopg

from blogdata.contract.contract import Contract
from blogdata.contract.migrations import carried
from blogdata.contract.publication import PARTITION_ROWS, kept
from blogdata.contract.writes import Serve
from blogdata.deliver import transactional_sink
from blogdata.deliver.served_dataset import ServedDataset, requested
from blogdata.deliver.transactional_sink import RowsRefused, ServedTable, SinkDelivery
from blogdata.errors import ConfigurationError, PlatformError
from blogdata.ledger.deliveries import record_deliveries
from blogdata.ledger.events import EventLog
from blogdata.ledger.faults import input_not_published
from blogdata.runs.computation import Context, access_of
from blogdata.runs.lake_resource import LakeResource
from blogdata.runs.retries import failed, joined
from blogdata.runs.step import InputChanged
from blogdata.table.lake import Lake


@dataclass(frozen=True, kw_only=True)
class Sink(ServedDataset):
    """Datasets with the same partitions that PostgreSQL serves together: each is replaced in one transaction."""

    kind = "postgres"
    resources = frozenset({"lake", "postgres"})
    balanced = "The rows that are served are those of the ledger, counted before the commit"
    served: Sequence[Contract]

    @property
    def schema(self) -> str:
        assert isinstance(self.contract.write, Serve)
        return self.contract.write.schema

    def serve(self, context: Context, partitions: Sequence[str]) -> None:
        served, refused = self._deliver_all(context, partitions)
        for partition, figures in served.items():
            context.log_event(dg.AssetMaterialization(self.key, partition=partition, metadata=figures))
        if served and not refused:
            rows = sum(figures[PARTITION_ROWS] for figures in served.values())
            self.check_ledger(context, passed=True, metadata={"rows": rows})
        if refused:
            error = joined(refused, where=self.contract.dataset, outcome="could not be served")
            if any(isinstance(fault, RowsRefused) for fault in refused.values()):
                self.check_ledger(context, passed=False, description=error.what)
            raise failed(error)

    def due(self, context: Context) -> Sequence[str]:
        access, request = access_of(context), context.resources.request
        names = [contract.dataset for contract in self.served]
        asked = requested(request, self.contract, names, lambda: published_by_all(access.events, names))
        if asked is not None:
            return asked
        with context.resources.postgres.connection() as connection:
            # A process may have died after its delivery and before it logged the event.
            self._note(context, connection)
            return unserved(access.lake, access.events, names, transactional_sink.served(connection, self.schema))

    def _deliver_all(
        self, context: Context, partitions: Sequence[str]
    ) -> tuple[dict[str, dict[str, Any]], dict[str, PlatformError]]:
        """Return the figures of served partitions, and why others are refused."""
        served: dict[str, dict[str, Any]] = {}
        refused: dict[str, PlatformError] = {}
        for partition in partitions:
            try:
                served[partition] = self._deliver(context, partition)
            except PlatformError as error:
                # Transient errors are retried; without a configured database no partition can be served.
                if error.transient or isinstance(error, ConfigurationError):
                    raise
                context.log.error(f"{partition} is not served: {error}")
                refused[partition] = error
        if served:
            with context.resources.postgres.connection() as connection:
                self._note(context, connection)
        return served, refused

    def _deliver(self, context: Context, partition: str) -> dict[str, Any]:
        assert isinstance(self.contract.write, Serve)
        access, without = access_of(context), self.contract.write.without
        parts = [_served_table(access, contract, partition, without) for contract in self.served]
        delivery = SinkDelivery(partition=partition, parts=parts, run_id=context.run.run_id)
        with context.resources.postgres.connection() as connection:
            repeated = transactional_sink.deliver(connection, self.schema, delivery)
        figures = {f"rows/{dataset}": count for dataset, count in delivery.rows.items()}
        total = {PARTITION_ROWS: sum(delivery.rows.values())}
        return {**total, **figures, "batch": delivery.batch_id, "repeated": repeated}

    def _note(self, context: Context, connection: psycopg.Connection) -> None:
        """Log the missing events of served partitions, including deliveries of other runs."""

        def job_of(run_id: str) -> str | None:
            run = context.instance.get_run_by_id(run_id)
            return None if run is None else run.job_name

        names = [contract.dataset for contract in self.served]
        deliveries = transactional_sink.deliveries(connection, self.schema, names)
        record_deliveries(access_of(context).events, self.contract.dataset, deliveries, job_of=job_of)


def published_by_all(events: EventLog, datasets: Sequence[str]) -> Mapping[str, Mapping[str, int]]:
    """Find the partitions that all datasets have published and keep: partition to dataset to its newest version."""
    published = {dataset: kept(events.publications(dataset)) for dataset in datasets}
    keys = set.intersection(*(set(entries) for entries in published.values()))
    return {key: {dataset: published[dataset][key].version for dataset in datasets} for key in sorted(keys)}


def unserved(
    lake: Lake, events: EventLog, datasets: Sequence[str], served: Mapping[tuple[str, str, str], int]
) -> list[str]:
    """Find the partitions whose newest publications the database lacks."""
    opened = {dataset: lake.caught_up(dataset) for dataset in datasets}
    ids = {dataset: str(table.metadata().id) for dataset, table in opened.items() if table is not None}
    return [
        key
        for key, versions in published_by_all(events, datasets).items()
        if any(served.get((dataset, ids.get(dataset, ""), key), -1) < version for dataset, version in versions.items())
    ]


def _served_table(access: LakeResource, declared: Contract, partition: str, without: Collection[str]) -> ServedTable:
    dataset = declared.dataset
    table = access.lake.caught_up(dataset)
    contract = carried(declared, table)
    left = tuple(column for column in contract.columns if f"{dataset}.{column.name}" not in without)
    entry = access.events.publications(dataset, [partition]).get(partition)
    if table is None or entry is None:
        raise input_not_published(dataset, [partition], [dataset])
    version = table.version()
    if entry.version > version:
        raise InputChanged(
            what=f"{dataset} was published again while the step was starting",
            where=partition,
            next_step="the step is retried and reads the newer version",
        )
    return ServedTable(
        contract=replace(contract, columns=left),
        table_id=str(table.metadata().id),
        version=entry.version,
        rows=entry.rows_out,
        batches=access.batches(dataset, version, contract.partition_column or "", partition),
    )
