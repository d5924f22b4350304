"""What several figures of a report are drawn from is read once: it is faster, and they are of one state."""

from __future__ import annotations

from dataclasses import dataclass, field

from deltalake import DeltaTable

from blogdata.evidence.events import EventLog
from blogdata.lake.lake import Lake


@dataclass(frozen=True, kw_only=True)
class OpenedOnce(Lake):
    """A lake whose tables are opened once, at the version they have then."""

    _opened: dict[str, DeltaTable | None] = field(default_factory=dict, compare=False)

    def table(self, dataset: str) -> DeltaTable | None:
        """Open a table's log without a JVM, as when it was first opened."""
        if dataset not in self._opened:
            self._opened[dataset] = super().table(dataset)
        return self._opened[dataset]


class ReadOnce(EventLog):
    """An event log whose tables are opened once, so that it reads the events of each dataset once."""

    def __init__(self, lake: Lake) -> None:
        super().__init__(OpenedOnce(root=lake.root, storage_options=lake.storage_options))
        self._logs: dict[str, DeltaTable | None] = {}
        self.fresh = _Fresh(lake)
        """The same log, opened again each time; what it read last of a dataset is known here."""
        self._folded, self._gone = self.fresh.known, self.fresh.lost

    def _catch_up(self, dataset: str) -> DeltaTable | None:
        if dataset not in self._logs:
            # Events that are missing are added to the log as it is now.
            self._logs[dataset] = self.fresh.caught_up(dataset)
        return self._logs[dataset]


class _Fresh(EventLog):
    def __init__(self, lake: Lake) -> None:
        super().__init__(lake)
        self._logs: dict[str, DeltaTable | None] = {}
        self.known, self.lost = self._folded, self._gone

    def caught_up(self, dataset: str) -> DeltaTable | None:
        """Return the log with the events of all commits of a dataset, as when it was last caught up."""
        return self._logs[dataset] if dataset in self._logs else self._catch_up(dataset)

    def _catch_up(self, dataset: str) -> DeltaTable | None:
        self._logs[dataset] = super()._catch_up(dataset)
        return self._logs[dataset]
