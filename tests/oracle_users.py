"""The versions of users, from instant to instant in plain Python, sharing no code with the platform."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

REGISTERED = datetime(2020, 5, 5, tzinfo=timezone.utc)
"""When all of them registered."""
Version = tuple[str, str, datetime, datetime | None, int]
"""User, login, from when, until when, and rows it stands for."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """A row of bronze.users; without `at` it is of a full delivery."""

    day: int
    user: str
    login: str = "l"
    at: datetime | None = None
    deleted: bool = False
    dead: bool = False
    file: int = 1
    offset: int = 0

    @property
    def instant(self) -> datetime:
        return self.at or _midnight(self.day)

    @property
    def order(self) -> tuple[Any, ...]:
        """What decides at one instant: a usable row, then a change, then the one that landed last, or first."""
        place = (self.file, self.offset) if self.at else (-self.file, -self.offset)
        return not self.dead, self.at is not None, place


def versions(rows: Sequence[Row]) -> tuple[list[Version], int]:
    """Follow every user from instant to instant; return the versions, and the rows of deleted instants."""
    usable = [row for row in rows if not row.dead]
    deliveries = sorted({row.day for row in usable if row.at is None})
    found, left_out = list[Version](), 0
    for user in sorted({row.user for row in rows}):
        own = [row for row in rows if row.user == user and (row.at is None or not row.dead)]
        own = [row for row in own if row.at or row.day in deliveries]
        held: list[Any] | None = None
        seen = False
        for instant in sorted({row.instant for row in own} | {_midnight(day) for day in deliveries}):
            here = sorted((row for row in own if row.instant == instant), key=lambda row: row.order)
            count = sum(not row.dead for row in here)
            last = here[-1] if here else None
            if last is None or last.deleted:
                if held:
                    found.append((*held[:3], instant, held[3]))
                held = None
                left_out += count
            elif not last.dead:
                is_first = last.at is None and last.day == deliveries[0] and not seen
                if held and held[1] == last.login:
                    held[3] += count
                else:
                    if held:
                        found.append((*held[:3], instant, held[3]))
                    held = [user, last.login, REGISTERED if is_first else instant, count]
            seen = seen or bool(here)
        if held:
            found.append((*held[:3], None, held[3]))
    return sorted(found, key=lambda one: (one[0], one[2])), left_out


def _midnight(day: int) -> datetime:
    return datetime(2026, 1, day, tzinfo=timezone.utc)
