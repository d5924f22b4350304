"""Finds the first day of a deployment's history; partitions before it do not count as missing."""

from __future__ import annotations

from pathlib import Path

from evidence.events import EventLog
from planning.look import is_possible, now
from publish.partitions import Grain, key_of

_FOLDER = "date="


def first_day(landing: Path, events: EventLog, *, configured: str | None = None) -> str:
    """Find the first day of a deployment: its oldest delivery or oldest published partition, or today without either.

    Args:
        landing: The landing zone.
        events: The event log.
        configured: A day that a person configured; used only if it is earlier.
    """
    landed = (folder.name.removeprefix(_FOLDER) for folder in landing.glob(f"*/{_FOLDER}*"))
    published = (key[: len("2026-01-05")] for key in events.earliest())
    days = [day for day in (*landed, *published) if is_possible(day, Grain.DAY)]
    return min([*days, *([configured] if configured else [])], default=key_of(now(), Grain.DAY))
