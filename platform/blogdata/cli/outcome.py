"""The result of a command.

Findings of a run in the landing zone: misnamed, overdue or refused partitions, and new fields.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from blogdata.evidence.events import EventLog
    from blogdata.patterns.ingestion.readiness_marker import LandingZone
    from blogdata.publish.contract import Contract
    from blogdata.services.config import Settings


def add_findings(outcome: Outcome, landed: Collection[Contract], zone: LandingZone, events: EventLog) -> None:
    """Add to the outcome of a run what it has passed over in the landing zone, and the new fields it has seen."""
    from blogdata.planning import arrivals
    from blogdata.planning.findings import still_unannounced
    from blogdata.planning.snapshot import Snapshot

    now = datetime.now(timezone.utc)
    look = Snapshot(zone, events)
    outcome.warnings += arrivals.warnings(landed, look, now)
    begun = now - timedelta(seconds=outcome.seconds)
    for contract in landed:
        new = [field.name for field in still_unannounced(events, contract) if field.seen_at >= begun]
        if new:
            outcome.warnings.append(f"{contract.dataset}: new fields ({', '.join(new)}); see blogdata status")
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
