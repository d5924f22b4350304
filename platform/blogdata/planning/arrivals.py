"""What has landed but is not ingested, and what is overdue, from the landing zone and the event log.

Commands, sensors and checks of the landing zone share these messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from blogdata.contract.contract import Contract
from blogdata.contract.partitions import Grain, contiguous
from blogdata.errors import PlatformError
from blogdata.landing.log_splitter import refused_logs
from blogdata.landing.readiness_marker import (
    FLAG,
    Lack,
    LandedPartition,
    LandingZone,
    gaps,
    late_files,
    overdue,
    printable,
    start_of_key,
)
from blogdata.ledger.events import EventLog
from blogdata.planning.clock import EARLIEST, is_possible
from blogdata.planning.reach import Landed, landed_input, not_published
from blogdata.planning.snapshot import Snapshot, usable

ABSENT = "absent"
_NAMED = 5
_WHY = {
    Lack.FLAG.value: f"data without {FLAG}",
    Lack.SUCCESSOR.value: f"data without {FLAG}, and none that is later",
    Lack.ENTRY.value: "an entry is not read",
    ABSENT: "not there, though a later one is",
}


@dataclass(frozen=True, kw_only=True)
class Overdue:
    """`without` has what is missing (a :class:`Lack` value, or :data:`ABSENT`), and the partitions that lack it."""

    without: Mapping[str, Sequence[str]]
    warning: str | None = None


@dataclass(frozen=True, kw_only=True)
class Arrivals:
    """A snapshot of a landed table: all of its partitions, in order."""

    contract: Contract
    landed: Landed
    zone: LandingZone
    partitions: Sequence[LandedPartition]

    @classmethod
    def of(cls, contract: Contract, landing: Path | LandingZone) -> Arrivals:
        landed, zone = landed_input(contract), LandingZone.of(landing)
        assert landed is not None, f"{contract.dataset} reads nothing that lands"
        return cls(contract=contract, landed=landed, zone=zone, partitions=zone.scan(landed.table, landed.grain))

    @property
    def refused(self) -> list[LandedPartition]:
        return [partition for partition in self.partitions if partition.links]

    @property
    def astray_warning(self) -> str | None:
        entries = self.zone.astray(self.landed.table, self.landed.grain)
        place = "date=YYYY-MM-DD/hour=HH" if self.landed.grain is Grain.HOUR else "date=YYYY-MM-DD"
        number = "1 entry lies" if len(entries) == 1 else f"{len(entries)} entries lie"
        text = f"{self.landed.table}: {number} outside of {place}, and are not read: {_first(entries)}"
        return f"{text}; move the data there" if entries else None

    @property
    def misnamed_warning(self) -> str | None:
        """Name the complete partitions whose key is no time, lies in the future, or before the blog's history."""
        # By convention `next_exists` a future partition has no successor and is never complete: files are enough.
        keys = [
            part.key
            for part in self.partitions
            if (part.ready or (self.zone.convention != "flag" and part.files))
            and not is_possible(part.key, self.landed.grain)
        ]
        text = f"{self.landed.table}: {_counted(keys, 'folder')} complete and not taken in: {_first(keys)}"
        remedy = f"give each the name of the {self.landed.grain.value} of its data, from {EARLIEST} until now"
        return f"{text}; {remedy}" if keys else None

    def overdue(self, events: EventLog, now: datetime) -> Overdue:
        assert self.contract.freshness_hours is not None
        grain, deadline = self.landed.grain, timedelta(hours=self.contract.freshness_hours)
        lacking = overdue(self.partitions, grain, now=now, deadline=deadline)
        lacking += [part for part in self.refused if start_of_key(part.key, grain) is None]
        without: dict[str, list[str]] = {}
        for part in lacking:
            assert part.lacks is not None
            without.setdefault(part.lacks.value, []).append(part.key)
        # A table that is written whole is delivered only when something is new: a missing day is not overdue.
        absent = gaps(self.partitions, grain, now=now, deadline=deadline) if self.contract.partitioning else []
        if absent := sorted({*absent} - (events.publications(self.contract.dataset, absent) if absent else {}).keys()):
            without[ABSENT] = absent
        if not without:
            return Overdue(without={})
        spans = [f"{span} ({_WHY[why]})" for why, keys in without.items() for span in _spans(why, keys, grain)]
        count = _counted([key for keys in without.values() for key in keys], grain.value)
        return Overdue(
            without=without,
            warning=f"{self.landed.table}: {count} overdue, due {self.contract.freshness_hours:g} h after the end: "
            f"{_first(spans)}; ask the producer, or make it readable and whole, and write {FLAG} into the folder last",
        )


def _spans(why: str, keys: Sequence[str], grain: Grain) -> list[str]:
    if why != ABSENT:
        # A refused entry may stand in place of a day of hours, or of the table (empty key).
        return [key or "everything" for key in keys]
    return [first if first == last else f"{first}..{last}" for first, last in contiguous(keys, grain)]


def warnings(contracts: Iterable[Contract], look: Snapshot, now: datetime) -> list[str]:
    """Warn of misnamed, overdue and late landed data and of stray files, one line of each kind per landed table."""
    lines: list[str | None] = []
    for contract in contracts:
        arrivals, published = Arrivals.of(contract, look.zone), look.published(contract.dataset)
        lines += [arrivals.astray_warning, arrivals.misnamed_warning, arrivals.overdue(look.events, now).warning]
        if contract.partitioning is None:
            continue
        changed = not_published(usable(arrivals.partitions, arrivals.landed.grain), published)
        if late := [f"{part.key}/{printable(file.name)}" for part in changed for file in late_files(part)]:
            lines.append(f"{arrivals.landed.table}: files came after {FLAG}, and are taken in: {_first(late)}")
        if again := [part.key for part in changed if part.key in published and published[part.key].expired is not None]:
            lines.append(
                f"{contract.dataset}: files of {_first(again)} came or changed after their rows had expired, and "
                "are not taken in; land them in an hour or day of now, or remove them"
            )
    return [line for line in lines if line]


def refusals(contracts: Iterable[Contract], landing: Path | LandingZone) -> list[PlatformError]:
    """List the errors of refused links and entries that block publication, those of access logs included."""
    links = [link for contract in contracts for part in Arrivals.of(contract, landing).refused for link in part.links]
    return [link.refusal() for link in [*links, *refused_logs(LandingZone.of(landing).folder)]]


def _counted(names: Sequence[str], noun: str) -> str:
    return f"1 {noun} is" if len(names) == 1 else f"{len(names)} {noun}s are"


def _first(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
