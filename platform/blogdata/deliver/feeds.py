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
from blogdata.runs.checks import LEDGER
from blogdata.runs.computation import Context, access_of, log_event


@dataclass(frozen=True, kw_only=True)
class PartnerFeed(ServedDataset):
    """A dataset whose rows are sent to a partner: its partitions are taken into an outbox, and sent from there."""

    kind = "python"
    resources = frozenset({"lake", "deployment"})
    balanced = "Every row is delivered, or counted under the reason why it is not"
    source: Contract

    @property
    def _write(self) -> Feed:
        assert isinstance(self.contract.write, Feed)
        return self.contract.write

    def serve(self, context: Context, partitions: Sequence[str]) -> None:
        published = access_of(context).events.publications(self.source.dataset, partitions)
        if missing := [key for key in partitions if key not in published]:
            raise input_not_published(self.contract.dataset, missing, [self.source.dataset])
        for line in self._deliver(context, partitions):
            context.log_event(dg.AssetMaterialization(self.key, partition=line.partition, metadata=_figures(line)))
        lines = self._outbox(context).lines()
        lost = {line.partition: line.missing for line in lines if line.missing}
        judged = dg.AssetCheckEvaluation(
            asset_key=self.key,
            check_name=LEDGER,
            passed=not lost,
            metadata={"rows": sum(line.rows_in for line in lines)},
            description=f"rows are not accounted for: {lost}" if lost else None,
        )
        log_event(context, judged)

    def due(self, context: Context) -> Sequence[str]:
        events = access_of(context).events
        source = self.source.dataset
        asked = requested(context.resources.request, self.contract, [source], lambda: events.publications(source))
        return partner.untaken(self._outbox(context), events, source) if asked is None else asked

    def _deliver(self, context: Context, partitions: Sequence[str]) -> list[OutboxLine]:
        """Take partitions, and all that is published and not taken, into the outbox, and send what is due, in order."""
        settings: Settings = context.resources.deployment.settings()
        box, access, dataset = partner.outbox(settings), access_of(context), self.source.dataset
        with box.alone():
            for partition in sorted({*partitions, *partner.untaken(box, access.events, dataset)}):
                # Before the rows are read: if another run publishes meanwhile, they are newer, and are taken again.
                source, entry = partner.published(access.events, dataset, [partition])[partition]
                version, column = access.lake.version(dataset), self.source.partition_column
                assert version is not None
                assert column is not None
                batches = access.batches(dataset, version, column, partition)
                rows = [row for batch in batches for row in batch.to_pylist()]
                partner.take(box, source, entry, self._write, partition, rows)
            self._note(context, box)
            context.log.info(f"the partner took {partner.send(settings, box, self._write)} records")
            # What was delivered counts as such: the account is that after the sending.
            return [line for line in box.lines() if line.partition in set(partitions)]

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
        record_deliveries(
            access_of(context).events, self.contract.dataset, taken, job_of=lambda _: context.run.job_name
        )

    def _outbox(self, context: Context) -> Outbox:
        return partner.outbox(context.resources.deployment.settings())


def _figures(line: OutboxLine) -> dict[str, Any]:
    states = {f"rows/{state}": count for state, count in sorted(line.states.items()) if state != "delivered"}
    return {
        PARTITION_ROWS: line.states.get("delivered", 0),
        "rows_in": line.rows_in,
        "rows/private": line.private,
        **states,
    }
