"""A snapshot of a deployment: each dataset is read once, so that a whole plan is computed from one state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from blogdata.lake.commit import Entry
from blogdata.patterns.ingestion.readiness_marker import LandedPartition, LandingZone
from blogdata.planning import faults
from blogdata.planning.faults import Fault
from blogdata.publish.contract import Contract
from blogdata.publish.partitions import Grain, key_of, start_of

if TYPE_CHECKING:
    from blogdata.evidence.events import EventLog

EARLIEST = "2000"
"""The earliest plausible year: an older event or delivery has a wrong timestamp."""


@dataclass(frozen=True, kw_only=True)
class ScannedOnce(LandingZone):
    """A landing zone as it was when each of its tables was first read.

    Args:
        scanned: The partitions by table, grain and first partition.
    """

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
        """Return every partition that was published at any time, those that a repair took back included."""
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
        table: Folder in the landing zone.
        grain: Length of a partition.
    """
    return usable(LandingZone.of(landing).scan(table, grain), grain)


def usable(partitions: Iterable[LandedPartition], grain: Grain) -> list[LandedPartition]:
    """Keep the complete partitions whose key is a possible time."""
    present = key_of(now(), grain)
    return [part for part in partitions if part.ready and part.key <= present and _is_key(part.key, grain)]


def is_possible(key: str, grain: Grain) -> bool:
    """Return whether a key is a valid partition key, not before :data:`EARLIEST` and not in the future."""
    return _is_key(key, grain) and key <= key_of(now(), grain)


@lru_cache(maxsize=200_000)
def _is_key(key: str, grain: Grain) -> bool:
    try:
        moment = datetime.strptime(key, grain.key_format).replace(tzinfo=timezone.utc)
    except ValueError:
        return False
    return moment.strftime(grain.key_format) == key and key >= EARLIEST


def newest_end(contract: Contract, partitions: Iterable[str]) -> datetime | None:
    """Return the end of the newest partition of a dataset; None without one, or for a table without partitions.

    Args:
        contract: Contract of the dataset.
        partitions: Its partitions. One in the future comes from a wrong clock, and would hide that no newer ones come.
    """
    grain = contract.grain
    if grain is None:
        return None
    newest = max((key for key in partitions if is_possible(key, grain)), default=None)
    return None if newest is None else start_of(newest, grain) + grain.length


def now() -> datetime:
    """Return the current time, UTC; the only clock that planning reads."""
    return datetime.now(timezone.utc)
