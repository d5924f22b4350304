"""A snapshot of a deployment: each dataset is read once, so that a whole plan is computed from one state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar, cast

from blogdata.contract.contract import Contract, Read
from blogdata.contract.partitions import Grain, key_of
from blogdata.contract.publication import Entry
from blogdata.errors import PlatformError
from blogdata.errors.remedies import Land, Remedy
from blogdata.landing.readiness_marker import LandedPartition, LandingZone
from blogdata.landing.streamed_files import StreamedFiles
from blogdata.ledger import faults
from blogdata.ledger.events import EventLog
from blogdata.ledger.faults import Fault
from blogdata.planning import clock
from blogdata.planning.clock import is_possible
from blogdata.planning.graph import LANDING, Graph
from blogdata.planning.reach import Landed, landed_input

_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True)
class ScannedOnce(LandingZone):
    """A landing zone as it was when each of its tables was first read."""

    scanned: dict[tuple[str, Grain, str], list[LandedPartition]] = field(default_factory=dict, compare=False)

    def scan(self, table: str, grain: Grain, *, since: str = "") -> list[LandedPartition]:
        key = (table, grain, since)
        if key not in self.scanned:
            self.scanned[key] = super().scan(table, grain, since=since)
        return self.scanned[key]


class Snapshot:
    """What has landed and what is published; each dataset is read on first access and cached."""

    def __init__(self, landing: Path | LandingZone, events: EventLog) -> None:
        zone = LandingZone.of(landing)
        self.zone = ScannedOnce(folder=zone.folder, convention=zone.convention)
        self.events = events
        self._read: dict[tuple[object, ...], Any] = {}

    def landed(self, table: str, grain: Grain) -> list[LandedPartition]:
        return self._once(landed, self.zone, table, grain)

    def published(self, dataset: str) -> Mapping[str, Entry]:
        return self._once(self.events.publications, dataset)

    def ever_published(self, dataset: str) -> set[str]:
        """Return every partition that was published at any time, those of a lost table included."""
        return self._once(self.events.ever_published, dataset)

    def history(self, dataset: str) -> Sequence[Entry]:
        return self._once(self.events.history, dataset)

    def faults(self, dataset: str) -> Mapping[str, Fault]:
        return self._once(faults.newest_by_partition, self.events, dataset)

    def _once(self, read: Callable[..., _T], *of: object) -> _T:
        key = (read, *of)
        if key not in self._read:
            self._read[key] = read(*of)
        return cast("_T", self._read[key])


def landed(landing: Path | LandingZone, table: str, grain: Grain) -> list[LandedPartition]:
    """List the complete partitions of a landed table, in order; a plain path is a zone with `_SUCCESS` flags."""
    return usable(LandingZone.of(landing).scan(table, grain), grain)


def usable(partitions: Iterable[LandedPartition], grain: Grain) -> list[LandedPartition]:
    present = key_of(clock.now(), grain)
    return [part for part in partitions if part.ready and part.key <= present and clock.is_key(part.key, grain)]


@dataclass(frozen=True, kw_only=True)
class StreamedInput:
    """What a stream reads, and the contracts of what it appends to, by name; the first one reads the files."""

    name: str
    source: StreamedFiles
    checkpoints: Path
    contracts: Mapping[str, Contract]


@dataclass(frozen=True, kw_only=True)
class Observed:
    """What detectors and findings read; `feeds` are contracts with their :class:`blogdata.deliver.outbox.Outbox`."""

    graph: Graph
    look: Snapshot
    now: datetime
    streams: Sequence[StreamedInput] = ()
    feeds: Sequence[tuple[Contract, Any]] = ()

    @cached_property
    def ended_at(self) -> datetime | None:
        """When the data of the landing zone ended, as a simulation notes; None if later data have landed."""
        zone, end = self.look.zone, self.look.zone.ended_at
        if end is None:
            return None
        inputs = {reach for contract in self.contracts.values() if (reach := landed_input(contract))}
        later = any(
            partition.files and is_possible(partition.key, reach.grain)
            for reach in inputs
            for partition in zone.scan(reach.table, reach.grain, since=key_of(end, reach.grain))
        )
        return None if later else end

    @property
    def contracts(self) -> Mapping[str, Contract]:
        return {
            **self.graph.contracts,
            **{name: of for stream in self.streams for name, of in stream.contracts.items()},
        }


def is_known(look: Snapshot, read: Read) -> bool:
    if isinstance(read.reach, Landed):
        return bool(look.landed(read.reach.table, read.reach.grain))
    return bool(look.published(read.dataset))


def landed_tables(graph: Graph, look: Snapshot) -> frozenset[str]:
    reads = [read for contract in graph.contracts.values() for read in contract.reads]
    return frozenset(read.dataset for read in reads if read.dataset.startswith(LANDING) and is_known(look, read))


def awaited(graph: Graph, look: Snapshot, dataset: str) -> PlatformError | None:
    """Return the error that nothing can be computed of a dataset yet; None if something can."""
    landed, above = landed_tables(graph, look), {dataset, *graph.upstream([dataset])}
    if dataset in graph.with_input([*landed, *(name for name in above if look.published(name))]):
        return None
    read = {edge.above for name in above for edge, _ in graph.edges(graph.task_of(name))}
    missing = sorted(name for name in read - landed if name.startswith(LANDING))
    return PlatformError(
        what=f"nothing can be computed of {dataset} yet: nothing has landed of {', '.join(missing)}",
        where=dataset,
        next_step=Remedy("leave it, for a run computes it once that has landed; what can land: ", Land()),
    )
