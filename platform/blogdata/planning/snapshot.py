"""A snapshot of a deployment: each dataset is read once, so that a whole plan is computed from one state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from blogdata.lake.commit import Entry
from blogdata.patterns.ingestion.landed_partition import LandedPartition
from blogdata.patterns.ingestion.readiness_marker import LandingZone
from blogdata.planning import clock, faults
from blogdata.planning.faults import Fault
from blogdata.publish.partitions import Grain, key_of

if TYPE_CHECKING:
    from blogdata.evidence.events import EventLog


@dataclass(frozen=True, kw_only=True)
class ScannedOnce(LandingZone):
    """A landing zone as it was when each of its tables was first read."""

    scanned: dict[tuple[str, Grain, str], list[LandedPartition]] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, landing: Path | LandingZone) -> ScannedOnce:
        """Return what is in a landing zone now."""
        zone = LandingZone.of(landing)
        return cls(folder=zone.folder, convention=zone.convention)

    def scan(self, table: str, grain: Grain, *, since: str = "") -> list[LandedPartition]:
        """Read all partitions of a landed table, once."""
        key = (table, grain, since)
        if key not in self.scanned:
            self.scanned[key] = super().scan(table, grain, since=since)
        return self.scanned[key]


class Snapshot:
    """What has landed and what is published; each dataset is read on first access and cached."""

    def __init__(self, landing: Path | LandingZone, events: EventLog) -> None:
        self.zone = ScannedOnce.of(landing)
        self.events = events
        self._landed: dict[tuple[str, Grain], list[LandedPartition]] = {}
        self._published: dict[str, Mapping[str, Entry]] = {}
        self._history: dict[str, Sequence[Entry]] = {}
        self._executions: dict[str, Sequence[Entry]] = {}
        self._ever: dict[str, set[str]] = {}
        self._faults: dict[str, Mapping[str, Fault]] = {}

    def landed(self, table: str, grain: Grain) -> list[LandedPartition]:
        """List the complete partitions of a landed table, in time order."""
        if (table, grain) not in self._landed:
            self._landed[table, grain] = landed(self.zone, table, grain)
        return self._landed[table, grain]

    def published(self, dataset: str) -> Mapping[str, Entry]:
        """Map each partition to its newest publication."""
        if dataset not in self._published:
            self._published[dataset] = self.events.publications(dataset)
        return self._published[dataset]

    def ever_published(self, dataset: str) -> set[str]:
        """Return every partition that was published at any time, those of a lost table included."""
        if dataset not in self._ever:
            self._ever[dataset] = self.events.ever_published(dataset)
        return self._ever[dataset]

    def history(self, dataset: str) -> Sequence[Entry]:
        """List all publications of a dataset, by version."""
        if dataset not in self._history:
            self._history[dataset] = self.events.history(dataset)
        return self._history[dataset]

    def executions(self, dataset: str) -> Sequence[Entry]:
        """List all executions and restorations of a dataset whose periods are merged in order."""
        if dataset not in self._executions:
            self._executions[dataset] = self.events.executions(dataset)
        return self._executions[dataset]

    def faults(self, dataset: str) -> Mapping[str, Fault]:
        """Map each partition that ever failed permanently to its newest fault."""
        if dataset not in self._faults:
            self._faults[dataset] = faults.newest_by_partition(self.events, dataset)
        return self._faults[dataset]


def landed(landing: Path | LandingZone, table: str, grain: Grain) -> list[LandedPartition]:
    """List the complete partitions of a landed table, in time order.

    Args:
        landing: The landing zone; a plain path is a zone whose producers write `_SUCCESS` flags.
    """
    return usable(LandingZone.of(landing).scan(table, grain), grain)


def usable(partitions: Iterable[LandedPartition], grain: Grain) -> list[LandedPartition]:
    """Keep the complete partitions whose key is a possible time."""
    present = key_of(clock.now(), grain)
    return [part for part in partitions if part.ready and part.key <= present and clock.is_key(part.key, grain)]
