"""The landing zone of a deployment, for commands that do without Dagster, and the days that Dagster shows."""

from __future__ import annotations

from blogdata.evidence.events import EventLog
from blogdata.lake.lake import Lake
from blogdata.patterns.ingestion.readiness_marker import LandingZone
from blogdata.planning import history
from blogdata.planning.history import Span
from blogdata.services.config import Settings


def days_of(settings: Settings) -> Span:
    """Find the days of a deployment's data; where runs start by themselves, data are expected until now."""
    return history.span(
        settings.landing,
        EventLog(Lake(root=str(settings.lake))),
        configured=settings.first_day,
        to_now=settings.run_automatically,
    )


def zone_of(settings: Settings) -> LandingZone:
    """Return the landing zone of a deployment, with its convention for complete partitions."""
    return LandingZone(folder=settings.landing, convention=settings.ready)
