"""An event entrance for three senders, and events as they send them."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from blogdata.patterns.ingestion.event_inbox import Inbox, InboxEntry
from blogdata.patterns.ingestion.external_trigger import FILE, HTTP, Notification, Sender, Trigger

NOW = datetime(2026, 1, 5, 10, tzinfo=timezone.utc)
TOKENS = {"shop": "a" * 32, "ads": "b" * 32}
EVENT = {"id": "42", "source": "shop", "time": "2026-01-05T09:59:00Z", "datasets": ["raw.items"]}


def trigger_in(folder: Path) -> Trigger:
    """Make an entrance for three senders: one makes no calls, and one may request a single dataset."""
    senders = (
        Sender(name="shop"),
        Sender(name="ads", datasets=("raw.ads",)),
        Sender(name="partner", channels=frozenset([FILE])),
    )
    return Trigger(
        senders={sender.name: sender for sender in senders},
        tokens=lambda: TOKENS,
        datasets=("raw.items", "raw.ads"),
        inbox=Inbox(path=folder / "events.sqlite"),
        oldest=timedelta(days=1),
        longest=timedelta(days=31),
        version="1.0",
    )


def event(**changes: Any) -> dict[str, Any]:
    """Build the fields of an event; a change to None omits the field."""
    return {name: value for name, value in {**EVENT, **changes}.items() if value is not None}


def call(trigger: Trigger, body: object, *, token: str | None = TOKENS["shop"], at: datetime = NOW) -> InboxEntry:
    """Call the entrance with an event or with bytes; return its first entry."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return trigger.take(notification(raw, token=token, at=at))[0]


def notification(raw: bytes, *, channel: str = HTTP, token: str | None = None, at: datetime = NOW) -> Notification:
    """Build a notification as it comes through a channel."""
    return Notification(body=raw, size=len(raw), channel=channel, origin="192.0.2.1", at=at, token=token)
