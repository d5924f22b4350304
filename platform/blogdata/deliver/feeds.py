"""Builds a Dagster asset that sends the rows of a dataset to a partner, in order (Bin Pack Orderer, FIFO Orderer)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import dagster as dg

from blogdata.contract.contract import Contract
from blogdata.contract.publication import PARTITION_ROWS
from blogdata.contract.writes import Feed
from blogdata.deliver import partner
from blogdata.deliver.outbox import Outbox, OutboxLine
from blogdata.deliver.served_dataset import ServedDataset, requested
from blogdata.ledger.deliveries import Served, record_deliveries
from blogdata.ledger.faults import input_not_published
from blogdata.operate.config import Settings
from blogdata.runs.computation import Context, access_of


@dataclass(frozen=True, kw_only=True)
class PartnerFeed(ServedDataset):
    """A dataset whose rows are sent to a partner: its partitions are taken into an outbox, and sent from there."""

    kind = "python"
    resources = frozenset({"lake", "deployment"})
    balanced = "Every row is delivered, or counted under the reason why it is not"
    source: Contract

    def serve(self, context: Context, partitions: Sequence[str]) -> None:
        published = access_of(context).events.publications(self.source.dataset, partitions)
        if missing := [key for key in partitions if key not in published]:
            raise input_not_published(self.contract.dataset, missing, [self.source.dataset])
        lines = self._deliver(context, partitions)
        for line in lines:
            if line.partition in partitions:
                context.log_event(dg.AssetMaterialization(self.key, partition=line.partition, metadata=_figures(line)))
        lost = {line.partition: line.missing for line in lines if line.missing}
        why = f"rows are not accounted for: {lost}" if lost else None
        rows = {"rows": sum(line.rows_in for line in lines)}
        self.check_ledger(context, passed=not lost, metadata=rows, description=why)

    def due(self, context: Context) -> Sequence[str]:
        events = access_of(context).events
        source = self.source.dataset
        asked = requested(context.resources.request, self.contract, [source], lambda: events.publications(source))
        settings = context.resources.deployment.settings()
        return partner.untaken(partner.outbox(settings), events, source) if asked is None else asked

    def _deliver(self, context: Context, partitions: Sequence[str]) -> list[OutboxLine]:
        """Take partitions, and all that is published and not taken, into the outbox; send what is due, in order."""
        settings: Settings = context.resources.deployment.settings()
        box, access = partner.outbox(settings), access_of(context)
        dataset, write = self.source.dataset, self.contract.write
        assert isinstance(write, Feed)
        with box.alone():
            for partition in sorted({*partitions, *partner.untaken(box, access.events, dataset)}):
                # Before the rows are read: if another run publishes meanwhile, they are newer, and are taken again.
                source, entry = partner.published(access.events, dataset, [partition])[partition]
                version, column = access.lake.version(dataset), self.source.partition_column
                assert version is not None
                assert column is not None
                batches = access.batches(dataset, version, column, partition)
                rows = [row for batch in batches for row in batch.to_pylist()]
                partner.take(box, source, entry, write, partition, rows)
            self._note(context, box)
            context.log.info(f"the partner took {partner.send(settings, box, write)} records")
            # What was delivered counts as such: the account is that after the sending.
            return box.lines()

    def _note(self, context: Context, box: Outbox) -> None:
        """Log the missing events of taken partitions, those of runs that died included."""
        dataset, now = self.source.dataset, datetime.now(timezone.utc)
        taken = [
            Served(
                batch_id=f"{line.partition}/{dataset}@{line.source}",
                partition=line.partition,
                inputs={dataset: int(line.source.rpartition(":")[2])},
                rows=line.rows_in - line.private,
                run_id=context.run.run_id,
                served_at=now,
            )
            for line in box.lines()
        ]
        events = access_of(context).events
        record_deliveries(events, self.contract.dataset, taken, job_of=lambda _: context.run.job_name)


def _figures(line: OutboxLine) -> dict[str, Any]:
    states = {f"rows/{state}": count for state, count in sorted(line.states.items()) if state != "delivered"}
    return {
        PARTITION_ROWS: line.states.get("delivered", 0),
        "rows_in": line.rows_in,
        "rows/private": line.private,
        **states,
    }
