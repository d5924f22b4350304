"""Deliveries of users, as tests write and read them."""

from __future__ import annotations

from datetime import datetime, timezone
from types import SimpleNamespace
from typing import Any

from assets.transforms import users


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=timezone.utc)  # type: ignore[misc,arg-type]


def in_utc(rows: list[Any]) -> list[Any]:
    """Rows reach the client in its own time zone, without saying so; convert them to UTC."""
    return [
        SimpleNamespace(
            **{
                name: value.astimezone(timezone.utc) if isinstance(value, datetime) else value
                for name, value in row.asDict().items()
            }
        )
        for row in rows
    ]


def identified(frame: Any, user: str = "id") -> Any:
    """Add the token of what each user is called by."""
    return frame.withColumn(users.IDENTITY, users.identity_of(user, "of the tests"))
