"""The result of a command.

Findings of a run in the landing zone: misnamed, overdue or refused partitions.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from blogdata.evidence.events import EventLog
    from blogdata.patterns.ingestion.readiness_marker import LandingZone
    from blogdata.publish.contract import Contract
    from blogdata.services.config import Settings


def add_findings(outcome: Outcome, landed: Collection[Contract], zone: LandingZone, events: EventLog) -> None:
    """Add to the outcome of a run what it has passed over in the landing zone."""
    from blogdata.planning import arrivals
    from blogdata.planning.snapshot import Snapshot

    look = Snapshot(zone, events)
    outcome.warnings += arrivals.warnings(landed, look, datetime.now(timezone.utc))
    outcome.problems += [str(error) for error in arrivals.refusals(landed, look.zone)]


def removed(contracts: Iterable[Contract], settings: Settings, events: EventLog) -> list[str]:
    """Warn about published partitions whose landed files are gone."""
    from blogdata.planning import arrivals
    from blogdata.planning.snapshot import Snapshot
    from resources.zone import zone_of

    look = Snapshot(zone_of(settings), events)
    return [warning for contract in contracts if (warning := arrivals.removed(contract, look))]


@dataclass(kw_only=True)
class Outcome:
    """What a command ran and published, with its problems and warnings."""

    runs: int = 0
    rows: int = 0
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    steps: list[dict[str, Any]] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.problems

    def as_json(self) -> dict[str, Any]:
        return {"ok": self.ok, **asdict(self), "seconds": round(self.seconds, 1)}
