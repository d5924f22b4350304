"""Fields that producers began to send without announcing them, as events: each once, when it was first seen."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from blogdata.evidence.event import Event
from blogdata.evidence.events import EventLog

NEW_FIELD = "new field"
MOST = 200
"""Fields of one dataset that are recorded; of more, only :data:`OTHERS`. Names come from outside."""
OTHERS = "…"


@dataclass(frozen=True, kw_only=True)
class NewField:
    """A field that nobody announced.

    Args:
        seen_at: When it was first seen, UTC.
    """

    dataset: str
    name: str
    partition: str
    lines: int
    looked_at: int
    seen_at: datetime


def seen(events: EventLog, dataset: str) -> list[NewField]:
    """List the fields of a dataset that were recorded, in the order in which they were first seen."""
    found: dict[str, NewField] = {}
    for event in events.notes(NEW_FIELD, dataset=dataset):
        payload = event.payload or {}
        # Two runs may have seen it at once.
        found.setdefault(
            payload["name"],
            NewField(
                dataset=event.dataset,
                name=payload["name"],
                partition=event.partition or "",
                lines=payload["lines"],
                looked_at=payload["looked_at"],
                seen_at=datetime.fromisoformat(payload["seen_at"]),
            ),
        )
    return list(found.values())


def record(events: EventLog, found: Sequence[NewField], *, run_id: str) -> list[NewField]:
    """Record the fields that were never seen before.

    Returns:
        Those that are new.
    """
    if not found:
        return []
    known: Mapping[str, NewField] = {field.name: field for field in seen(events, found[0].dataset)}
    new = [field for field in found if field.name not in known]
    room = max(0, MOST - len(known))
    if len(new) > room:
        more = [] if OTHERS in known else [NewField(**{**vars(new[room]), "name": OTHERS})]
        new = [*new[:room], *more]
    events.append(
        [
            Event(
                kind=NEW_FIELD,
                identity=str(uuid.uuid5(uuid.NAMESPACE_URL, f"{field.dataset}#{field.name}")),
                dataset=field.dataset,
                partition=field.partition,
                run_id=run_id,
                payload={
                    "name": field.name,
                    "lines": field.lines,
                    "looked_at": field.looked_at,
                    "seen_at": field.seen_at.isoformat(),
                },
            )
            for field in new
        ]
    )
    return new
