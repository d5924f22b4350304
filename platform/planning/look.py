"""One look at a deployment: everything is read once, so that all questions of a plan are asked of one state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from lake.commit import Entry
from patterns.ingestion.readiness_marker import LandedPartition, LandingZone
from planning import faults
from planning.faults import Fault
from publish.partitions import Grain, key_of

if TYPE_CHECKING:
    from evidence.events import EventLog

EARLIEST = "2000"
"""No event and no delivery is older: an earlier time is a mistake of whoever wrote it."""


class Snapshot:
    """What has landed and what is published; each dataset is looked at once, when somebody first asks about it."""

    def __init__(self, landing: Path | LandingZone, events: EventLog) -> None:
        self.zone = LandingZone.of(landing)
        self.events = events
        self._landed: dict[tuple[str, Grain], list[LandedPartition]] = {}
        self._published: dict[str, Mapping[str, Entry]] = {}
        self._history: dict[str, Sequence[Entry]] = {}
        self._executions: dict[str, Sequence[Entry]] = {}
        self._faults: dict[str, Mapping[str, Fault]] = {}

    def landed(self, table: str, grain: Grain) -> list[LandedPartition]:
        """List the complete partitions of a landed table, in order."""
        if (table, grain) not in self._landed:
            self._landed[table, grain] = landed(self.zone, table, grain)
        return self._landed[table, grain]

    def published(self, dataset: str) -> Mapping[str, Entry]:
        """Find each partition's newest publication."""
        if dataset not in self._published:
            self._published[dataset] = self.events.publications(dataset)
        return self._published[dataset]

    def history(self, dataset: str) -> Sequence[Entry]:
        """List every publication a dataset ever had, in the order of the versions."""
        if dataset not in self._history:
            self._history[dataset] = self.events.history(dataset)
        return self._history[dataset]

    def executions(self, dataset: str) -> Sequence[Entry]:
        """List all executions and restorations of a dataset that is written in order."""
        if dataset not in self._executions:
            self._executions[dataset] = self.events.executions(dataset)
        return self._executions[dataset]

    def faults(self, dataset: str) -> Mapping[str, Fault]:
        """Find the newest fault of each partition that ever failed for good."""
        if dataset not in self._faults:
            self._faults[dataset] = faults.noted(self.events, dataset)
        return self._faults[dataset]


def landed(landing: Path | LandingZone, table: str, grain: Grain) -> list[LandedPartition]:
    """List the complete partitions of a landed table, in order.

    Args:
        landing: The landing zone; a bare folder is one whose producers write flags.
        table: Folder in it.
        grain: Length of its partitions.
    """
    found = LandingZone.of(landing).scan(table, grain)
    return [partition for partition in found if partition.ready and is_possible(partition.key, grain)]


def is_possible(key: str, grain: Grain) -> bool:
    """Tell whether a key is the name of a partition that lies neither in the future nor before the earliest one."""
    try:
        moment = datetime.strptime(key, grain.key_format).replace(tzinfo=timezone.utc)
    except ValueError:
        return False
    return moment.strftime(grain.key_format) == key and EARLIEST <= key <= key_of(now(), grain)


def now() -> datetime:
    """The time, UTC; planning asks it here only."""
    return datetime.now(timezone.utc)
