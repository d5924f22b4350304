"""The landing zone of a deployment, for commands that do without Dagster."""

from __future__ import annotations

from blogdata.patterns.ingestion.readiness_marker import LandingZone
from blogdata.services.config import Settings


def zone_of(settings: Settings) -> LandingZone:
    """Return the landing zone of a deployment, with its convention for complete partitions."""
    return LandingZone(folder=settings.landing, convention=settings.ready)
