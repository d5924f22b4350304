"""Deliveries of users, as tests write and read them."""

from __future__ import annotations

from datetime import datetime, timezone
from types import SimpleNamespace
from typing import Any

from pyspark.sql import functions as F

from assets.silver import user_history


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


def delivered(frame: Any) -> Any:
    """Make rows those of full deliveries: none of them is a change."""
    return identified(
        frame.withColumns({"updated_at": F.lit(None).cast("TIMESTAMP"), "is_deleted": F.lit(None).cast("BOOLEAN")})
    )


def identified(frame: Any, user: str = "id") -> Any:
    """Add the token of what each user is called by."""
    return frame.withColumn(user_history.IDENTITY, user_history.identity_of(user, "of the tests"))
