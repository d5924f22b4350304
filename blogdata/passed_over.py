"""What a run of everything has passed over in the landing zone: misnamed, overdue or refused."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING

from blogdata.output import console

if TYPE_CHECKING:
    from collections.abc import Iterable

    from blogdata.outcome import Outcome
    from evidence.events import EventLog
    from patterns.ingestion.readiness_marker import LandingZone


def report(outcome: Outcome, zone: LandingZone, events: EventLog) -> None:
    """Add to the outcome of a run of everything what of the landing zone it has passed over.

    Args:
        outcome: Of the run; what is refused is a problem of it, the rest are warnings.
        zone: The landing zone.
        events: The event log.
    """
    from assets import arrivals

    outcome.warnings += arrivals.warnings(zone, events, datetime.now(timezone.utc))
    outcome.problems += [str(error) for error in arrivals.refusals(zone)]


def say_warnings(warnings: Iterable[str]) -> None:
    """Print warnings, a line each."""
    for warning in warnings:
        console.print(f"warning: {warning}", style="yellow", markup=False)
