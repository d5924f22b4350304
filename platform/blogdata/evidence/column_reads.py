"""Queries of columns that are being retired, as events: removing such a column would break the query."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime

from blogdata.evidence.event import Event
from blogdata.evidence.events import EventLog

COLUMN_READ = "column read"


@dataclass(frozen=True, kw_only=True)
class Reader:
    """Somebody who reads a column.

    Args:
        owner: Who can change that, as `team:name`; for a query the person who asked.
    """

    name: str
    owner: str
    how: str


@dataclass(frozen=True, kw_only=True)
class ColumnRead:
    """A query that named a column.

    Args:
        at: When, UTC.
    """

    dataset: str
    column: str
    by: str
    at: datetime


def record(events: EventLog, reads: list[ColumnRead]) -> None:
    """Record queries; one a day of each reader is enough."""
    known = {
        (one.dataset, one.column, one.by, one.at.date()) for each in reads for one in recorded(events, each.dataset)
    }
    events.append(
        [
            Event(
                kind=COLUMN_READ,
                identity=str(uuid.uuid4()),
                dataset=each.dataset,
                payload={"column": each.column, "by": each.by, "at": each.at.isoformat()},
            )
            for each in reads
            if (each.dataset, each.column, each.by, each.at.date()) not in known
        ]
    )


def recorded(events: EventLog, dataset: str) -> list[ColumnRead]:
    """List the recorded queries of a dataset's retiring columns, in their order."""
    return [
        ColumnRead(
            dataset=dataset,
            column=(event.payload or {})["column"],
            by=(event.payload or {})["by"],
            at=datetime.fromisoformat((event.payload or {})["at"]),
        )
        for event in events.notes(COLUMN_READ, dataset=dataset)
    ]
