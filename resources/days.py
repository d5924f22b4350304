"""The days of a deployment that Dagster shows partitions for."""

from __future__ import annotations

from evidence.events import EventLog
from lake.lake import Lake
from planning import history
from planning.history import Span
from services.config import Settings


def days_of(settings: Settings) -> Span:
    """Find the days of a deployment's data; where runs start by themselves, data are expected until now."""
    return history.span(
        settings.landing,
        EventLog(Lake(root=str(settings.lake))),
        configured=settings.first_day,
        to_now=settings.run_automatically,
    )
