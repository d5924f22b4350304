"""What several figures of a report are drawn from is read once: it is faster, and they are of one state."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from deltalake import DeltaTable

from evidence.events import EventLog
from lake.commit import Entry
from lake.lake import Lake
from patterns.ingestion.readiness_marker import LandedPartition, LandingZone
from publish.partitions import Grain


class ReadOnce(EventLog):
    """An event log that reads the events of each dataset once."""

    def __init__(self, lake: Lake) -> None:
        super().__init__(lake)
        self._known: dict[str, dict[str, Entry]] = {}
        self._logs: dict[str, DeltaTable | None] = {}
        self.fresh: EventLog = _Fresh(lake, self._known)
        """The same log, read again each time; what it reads of a whole dataset replaces what is known here."""

    def publications(
        self,
        dataset: str,
        partitions: Iterable[str] | None = None,
        *,
        since: str | None = None,
        until: str | None = None,
    ) -> dict[str, Entry]:
        """Return the ledger line of each partition, as when it was last read."""
        if partitions is not None or since is not None or until is not None:
            return super().publications(dataset, partitions, since=since, until=until)
        if dataset not in self._known:
            self._known[dataset] = super().publications(dataset)
        return self._known[dataset]

    def _catch_up(self, dataset: str) -> DeltaTable | None:
        if dataset not in self._logs:
            self._logs[dataset] = super()._catch_up(dataset)
        return self._logs[dataset]


class _Fresh(EventLog):
    def __init__(self, lake: Lake, known: dict[str, dict[str, Entry]]) -> None:
        super().__init__(lake)
        self._known = known

    def publications(
        self,
        dataset: str,
        partitions: Iterable[str] | None = None,
        *,
        since: str | None = None,
        until: str | None = None,
    ) -> dict[str, Entry]:
        found = super().publications(dataset, partitions, since=since, until=until)
        if partitions is None and since is None and until is None:
            self._known[dataset] = found
        return found


@dataclass(frozen=True, kw_only=True)
class ScannedOnce(LandingZone):
    """A landing zone whose tables are scanned once."""

    _scanned: dict[tuple[str, Grain, str], list[LandedPartition]] = field(default_factory=dict, compare=False)

    def scan(self, table: str, grain: Grain, *, since: str = "") -> list[LandedPartition]:
        """Return all partitions of a landed table, as when it was first scanned."""
        asked = (table, grain, since)
        if asked not in self._scanned:
            self._scanned[asked] = super().scan(table, grain, since=since)
        return self._scanned[asked]
