"""Deliveries to databases, as events: each delivery once, with the table versions it contains.

A delivery is first a transaction of the database, which records a line for it; the event is a projection of that line.
A process that dies between the two loses nothing: the next process that reads the database adds the event.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from blogdata.ledger.events import Event, EventLog

SERVED = "served"


@dataclass(frozen=True, kw_only=True)
class Served:
    """A partition of some datasets, delivered to a database in one transaction."""

    batch_id: str
    partition: str
    inputs: Mapping[str, int]
    rows: int
    run_id: str
    served_at: datetime
    """When the transaction began, UTC."""
    job: str | None = None
    """Job of the run; None if the run is no longer known."""


def record_deliveries(
    events: EventLog, dataset: str, served: Iterable[Served], *, job_of: Callable[[str], str | None]
) -> None:
    known = {delivery.batch_id for delivery in deliveries(events, dataset)}
    missing = []
    for delivery in served:
        if delivery.batch_id in known:
            continue
        payload = {"batch": delivery.batch_id, "inputs": dict(delivery.inputs), "rows": delivery.rows}
        payload |= {"served_at": delivery.served_at.isoformat(), "job": job_of(delivery.run_id)}
        event = Event(kind=SERVED, dataset=dataset, partition=delivery.partition, run_id=delivery.run_id)
        identity = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{dataset}@{delivery.batch_id}"))
        missing.append(replace(event, identity=identity, rows_out=delivery.rows, payload=payload))
    events.append(missing)


def deliveries(events: EventLog, dataset: str) -> list[Served]:
    by_batch: dict[str, Served] = {}
    for event in events.notes(SERVED, dataset=dataset):
        payload = event.payload or {}
        # Two processes that read the database at once may both have added it.
        by_batch[payload["batch"]] = Served(
            batch_id=payload["batch"],
            partition=event.partition or "",
            inputs=payload["inputs"],
            rows=payload["rows"],
            run_id=event.run_id or "",
            served_at=datetime.fromisoformat(payload["served_at"]),
            job=payload["job"],
        )
    return sorted(by_batch.values(), key=lambda delivery: delivery.served_at)
