"""Deliveries to databases, as events: each delivery once, with the table versions it contains.

A delivery is first a transaction of the database, which records a line for it; the event is a projection of that line.
A process that dies between the two loses nothing: the next process that reads the database adds the event.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from blogdata.ledger.event import Event
from blogdata.ledger.events import EventLog

SERVED = "served"


@dataclass(frozen=True, kw_only=True)
class Served:
    """A partition of some datasets, delivered to a database in one transaction.

    Args:
        served_at: When the transaction began, UTC.
        job: Job of the run; None if the run is no longer known.
    """

    batch_id: str
    partition: str
    inputs: Mapping[str, int]
    rows: int
    run_id: str
    served_at: datetime
    job: str | None = None


def record_deliveries(
    events: EventLog, dataset: str, served: Iterable[Served], *, job_of: Callable[[str], str | None]
) -> None:
    known = {each.batch_id for each in deliveries(events, dataset)}
    events.append(
        [
            Event(
                kind=SERVED,
                identity=str(uuid.uuid5(uuid.NAMESPACE_URL, f"{dataset}@{each.batch_id}")),
                dataset=dataset,
                partition=each.partition,
                run_id=each.run_id,
                rows_out=each.rows,
                payload={
                    "batch": each.batch_id,
                    "inputs": dict(each.inputs),
                    "rows": each.rows,
                    "served_at": each.served_at.isoformat(),
                    "job": job_of(each.run_id),
                },
            )
            for each in served
            if each.batch_id not in known
        ]
    )


def deliveries(events: EventLog, dataset: str) -> list[Served]:
    found: dict[str, Served] = {}
    for event in events.notes(SERVED, dataset=dataset):
        payload = event.payload or {}
        # Two processes that read the database at once may both have added it.
        found[payload["batch"]] = Served(
            batch_id=payload["batch"],
            partition=event.partition or "",
            inputs=payload["inputs"],
            rows=payload["rows"],
            run_id=event.run_id or "",
            served_at=datetime.fromisoformat(payload["served_at"]),
            job=payload["job"],
        )
    return sorted(found.values(), key=lambda each: each.served_at)
