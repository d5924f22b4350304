"""A deployment at one moment, as findings and detectors see it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path

from blogdata.patterns.data_value.outbox import Outbox
from blogdata.patterns.error_management.streamed_files import StreamedFiles
from blogdata.patterns.ingestion.readiness_marker import LandingZone
from blogdata.planning.clock import is_possible
from blogdata.planning.graph import Graph
from blogdata.planning.reach import landed_input
from blogdata.planning.snapshot import Snapshot
from blogdata.publish.contract import Contract
from blogdata.publish.partitions import key_of


@dataclass(frozen=True, kw_only=True)
class StreamedInput:
    """What a stream reads, and the contracts of what it appends to, by name; the first one reads the files."""

    name: str
    source: StreamedFiles
    checkpoints: Path
    contracts: Mapping[str, Contract]


@dataclass(frozen=True, kw_only=True)
class Observed:
    graph: Graph
    look: Snapshot
    now: datetime
    streams: Sequence[StreamedInput] = ()
    feeds: Sequence[tuple[Contract, Outbox]] = ()

    @cached_property
    def ended_at(self) -> datetime | None:
        """When the data of the landing zone ended, as a simulation's do; None if more data come."""
        return ended_at(self.look.zone, self.contracts.values())

    @property
    def contracts(self) -> Mapping[str, Contract]:
        return {**self.graph.contracts, **{name: one for each in self.streams for name, one in each.contracts.items()}}


def ended_at(zone: LandingZone, contracts: Iterable[Contract]) -> datetime | None:
    """Return the end that a landing zone notes, unless data of a later time have landed; None if more data come."""
    end = zone.ended_at
    if end is None:
        return None
    tables = {(landed.table, landed.grain) for contract in contracts if (landed := landed_input(contract))}
    later = any(
        one.files and is_possible(one.key, grain)
        for table, grain in tables
        for one in zone.scan(table, grain, since=key_of(end, grain))
    )
    return None if later else end
