"""The landing zone of a deployment, for commands that do without Dagster, and the days that Dagster shows."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from blogdata.contract.partitions import Grain, key_of
from blogdata.landing.readiness_marker import LandingZone
from blogdata.ledger.events import EventLog
from blogdata.operate.config import Settings
from blogdata.planning.clock import is_possible, now
from blogdata.table.faults import LogDamaged
from blogdata.table.lake import Lake


@dataclass(frozen=True, kw_only=True)
class Span:
    """Days of a history, both included; without a last one, until now."""

    first: str
    last: str | None


def span(landing: Path, events: EventLog, *, configured: str | None = None, to_now: bool = False) -> Span:
    """Find the days from the oldest delivery, published hour or configured day to the newest; today without any."""
    landed = (folder.name.removeprefix("date=") for folder in landing.glob("*/date=*"))
    keys: set[str] = set()
    # If it is damaged, whatever needs the log says so.
    with suppress(LogDamaged):
        keys = events.outermost()
    # A week begins before the data of its first hour does, and every day is computed from hours.
    published = (key.partition("T")[0] for key in keys if "T" in key)
    today = key_of(now(), Grain.DAY)
    days = [day for day in (*landed, *published) if is_possible(day, Grain.DAY)] or [today]
    return Span(first=min([*days, *([configured] if configured else [])]), last=None if to_now else max(days))


def days_of(settings: Settings) -> Span:
    """Find the days of a deployment's data; where runs start by themselves, data are expected until now."""
    return span(
        settings.landing,
        EventLog(Lake(root=str(settings.lake))),
        configured=settings.first_day,
        to_now=settings.run_automatically,
    )


def zone_of(settings: Settings) -> LandingZone:
    return LandingZone(folder=settings.landing, convention=settings.ready)
