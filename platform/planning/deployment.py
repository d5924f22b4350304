"""A deployment at one moment, as findings and detectors see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from patterns.data_value.outbox import Outbox
from patterns.error_management.streamed_files import StreamedFiles
from patterns.ingestion.event_inbox import Inbox
from planning.graph import Graph
from planning.look import Snapshot
from publish.contract import Contract


@dataclass(frozen=True, kw_only=True)
class StreamedInput:
    """What a stream reads, and where it notes how far it is.

    Args:
        name: Name of the stream.
        source: The files that it reads.
        checkpoints: Folder of the checkpoints of all streams.
        contracts: Contracts of the datasets that it appends to, by name; the first one reads the files.
    """

    name: str
    source: StreamedFiles
    checkpoints: Path
    contracts: Mapping[str, Contract]


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """What findings are drawn from.

    Args:
        graph: The lineage.
        look: Snapshot of what has landed and what is published.
        now: Current time, timezone-aware.
        streams: The streams that run beside the lineage.
        inbox: Events from outside; None if it is not looked at.
        feeds: What is sent to partners: the contract of each feed, and its outbox.
    """

    graph: Graph
    look: Snapshot
    now: datetime
    streams: Sequence[StreamedInput] = ()
    inbox: Inbox | None = None
    feeds: Sequence[tuple[Contract, Outbox]] = ()

    @property
    def contracts(self) -> Mapping[str, Contract]:
        """Contracts of all datasets, by name."""
        return {**self.graph.contracts, **{name: one for each in self.streams for name, one in each.contracts.items()}}
