"""The landing zone of a deployment, for commands that do without Dagster, and the days that Dagster shows."""

from __future__ import annotations

from contextlib import suppress

from blogdata.contract.partitions import Grain, key_of
from blogdata.landing.readiness_marker import LandingZone
from blogdata.ledger.events import EventLog
from blogdata.operate.config import Settings
from blogdata.planning.clock import is_possible, now
from blogdata.planning.snapshot import Snapshot
from blogdata.table.faults import LogDamaged
from blogdata.table.lake import Lake


def days_of(settings: Settings) -> tuple[str, str | None]:
    """Return the first and last day of a deployment: of deliveries, published hours and the configured day, or today.

    Where runs start by themselves, data are expected until now: there is no last day.
    """
    landed = (folder.name.removeprefix("date=") for folder in settings.landing.glob("*/date=*"))
    keys: set[str] = set()
    # If it is damaged, whatever needs the log says so.
    with suppress(LogDamaged):
        keys = EventLog(Lake(root=str(settings.lake))).outermost()
    # A week begins before the data of its first hour does, and every day is computed from hours.
    published = (key.partition("T")[0] for key in keys if "T" in key)
    today = key_of(now(), Grain.DAY)
    days = [day for day in (*landed, *published) if is_possible(day, Grain.DAY)] or [today]
    return min([*days, settings.first_day or days[0]]), None if settings.run_automatically else max(days)


def zone_of(settings: Settings) -> LandingZone:
    return LandingZone(folder=settings.landing, convention=settings.ready)


def snapshot_of(settings: Settings) -> Snapshot:
    return Snapshot(zone_of(settings), EventLog(Lake(root=str(settings.lake))))
