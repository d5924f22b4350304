"""Landing-zone partitions that a full run has passed over: misnamed, overdue or refused."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING

from blogdata.output import console

if TYPE_CHECKING:
    from collections.abc import Iterable

    from blogdata.outcome import Outcome
    from evidence.events import EventLog
    from patterns.ingestion.readiness_marker import LandingZone


def add_findings(outcome: Outcome, zone: LandingZone, events: EventLog) -> None:
    """Add to the outcome of a full run what it has passed over in the landing zone.

    Args:
        outcome: Outcome of the run; refusals are added to its problems, the rest to its warnings.
        zone: The landing zone.
        events: The event log.
    """
    from planning import arrivals
    from quality.contracts import LANDED

    outcome.warnings += arrivals.warnings(LANDED.values(), zone, events, datetime.now(timezone.utc))
    outcome.problems += [str(error) for error in arrivals.refusals(LANDED.values(), zone)]


def say_warnings(warnings: Iterable[str]) -> None:
    """Print warnings, a line each."""
    for warning in warnings:
        console.print(f"warning: {warning}", style="yellow", markup=False)
