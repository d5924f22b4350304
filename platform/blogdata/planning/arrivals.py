"""Landing-zone arrivals: what has landed but is not ingested, and what is overdue.

Commands, sensors and landing-zone checks share these findings and messages, so they never disagree. Everything is read
from the landing zone and the event log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from blogdata.contract.contract import Contract, Look
from blogdata.contract.partitions import Grain, contiguous
from blogdata.errors import PlatformError
from blogdata.landing import readiness_marker
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
_ASK = f"ask the producer, or write {FLAG} into the folder once its files are whole"
_REMEDY = {
    Lack.ENTRY.value: "make the entry readable, put the data in the place of a link, or remove it",
}


@dataclass(frozen=True, kw_only=True)
class Overdue:
    """The overdue partitions of a landed table.

    Args:
        deadline: How long after its end a partition is due.
        without: What is missing (a :class:`Lack` value, or :data:`ABSENT`) to the overdue partitions that lack it.
    """

    table: str
    grain: Grain
    deadline: timedelta
    without: Mapping[str, Sequence[str]]

    @property
    def keys(self) -> list[str]:
        return sorted(key for keys in self.without.values() for key in keys)

    @property
    def warning(self) -> str | None:
        if not self.keys:
            return None
        spans = [f"{span} ({_WHY[why]})" for why in self.without for span in self._spans(why)]
        hours = self.deadline.total_seconds() / 3600
        return (
            f"{self.table}: {_counted(self.keys, self.grain.value)} overdue, due {hours:g} h after the end: "
            f"{_first(spans)}; {'; '.join(dict.fromkeys(_REMEDY.get(why, _ASK) for why in self.without))}"
        )

    def _spans(self, why: str) -> list[str]:
        if why in _REMEDY:
            # A refused entry may replace a whole day of hours, or the whole table (empty key): such keys form no span.
            return [key or "everything" for key in self.without[why]]
        spans = contiguous(self.without[why], self.grain)
        return [first if first == last else f"{first}..{last}" for first, last in spans]


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
    def ready(self) -> list[LandedPartition]:
        return usable(self.partitions, self.landed.grain)

    @property
    def _misnamed(self) -> list[LandedPartition]:
        """Complete partitions whose key is no time, lies in the future, or lies before the blog's history."""
        # By convention `next_exists` a future partition has no successor and is never complete: files are enough.
        return [
            partition
            for partition in self.partitions
            if not is_possible(partition.key, self.landed.grain)
            and (partition.ready or (self.zone.convention != "flag" and partition.files))
        ]

    @property
    def astray_warning(self) -> str | None:
        found = self.zone.astray(self.landed.table, self.landed.grain)
        place = "date=YYYY-MM-DD/hour=HH" if self.landed.grain is Grain.HOUR else "date=YYYY-MM-DD"
        if not found:
            return None
        entries = "1 entry lies" if len(found) == 1 else f"{len(found)} entries lie"
        return (
            f"{self.landed.table}: {entries} outside of {place}, and are not read: {_first(found)}; move the data there"
        )

    @property
    def refused(self) -> list[LandedPartition]:
        return [partition for partition in self.partitions if partition.links]

    def after_the_flag(self, look: Look) -> list[str]:
        """List the files that came after the flag of their partition and are not published yet."""
        if self.contract.partitioning is None:
            return []
        changed = {one.key for one in not_published(self.ready, look.published(self.contract.dataset))}
        return [
            f"{one.key}/{printable(file.name)}" for one in self.ready if one.key in changed for file in late_files(one)
        ]

    def landed_after_expiry(self, look: Look) -> list[str]:
        """List the complete partitions whose rows have expired, and whose files are not those that were published."""
        published = look.published(self.contract.dataset)
        entries = [(one, published[one.key]) for one in self.ready if one.key in published]
        # An empty hour expires, too, with no rows.
        expired = [(one, entry) for one, entry in entries if entry.expired is not None]
        return [one.key for one, entry in expired if not readiness_marker.is_published(one, entry.landed)]

    def misnamed_warning(self, now: datetime) -> str | None:
        named = [f"{partition.key} ({self._why_impossible(partition.key, now)})" for partition in self._misnamed]
        if not named:
            return None
        return (
            f"{self.landed.table}: {_counted(named, 'folder')} complete and not taken in: {_first(named)}; "
            f"give each the name of the {self.landed.grain.value} in which its data arrived"
        )

    def overdue(self, events: EventLog, now: datetime) -> Overdue:
        assert self.contract.freshness_hours is not None
        deadline = timedelta(hours=self.contract.freshness_hours)
        without: dict[str, list[str]] = {}
        for partition in overdue(self.partitions, self.landed.grain, now=now, deadline=deadline):
            assert partition.lacks is not None
            without.setdefault(partition.lacks.value, []).append(partition.key)
        for partition in self.refused:
            if start_of_key(partition.key, self.landed.grain) is None:
                assert partition.lacks is not None
                without.setdefault(partition.lacks.value, []).append(partition.key)
        # A table that is written whole is delivered only when something is new: a missing day is not overdue.
        if self.contract.partitioning is not None:
            absent = gaps(self.partitions, self.landed.grain, now=now, deadline=deadline)
            # A published partition may have been removed from the landing zone since.
            published = events.publications(self.contract.dataset, absent) if absent else {}
            without[ABSENT] = [key for key in absent if key not in published]
        found = {why: keys for why, keys in without.items() if keys}
        return Overdue(table=self.landed.table, grain=self.landed.grain, deadline=deadline, without=found)

    def _why_impossible(self, key: str, now: datetime) -> str:
        start = start_of_key(key, self.landed.grain)
        if start is None:
            return f"no {self.landed.grain.value}"
        return "in the future, and taken in when its time has come" if start > now else f"before {EARLIEST}"


def warnings(contracts: Iterable[Contract], look: Snapshot, now: datetime) -> list[str]:
    """Warn about misnamed and overdue partitions and stray files, one line of each kind per landed table."""
    found = []
    for contract in contracts:
        arrivals = Arrivals.of(contract, look.zone)
        if astray := arrivals.astray_warning:
            found.append(astray)
        if misnamed := arrivals.misnamed_warning(now):
            found.append(misnamed)
        if overdue_now := arrivals.overdue(look.events, now).warning:
            found.append(overdue_now)
        if late := arrivals.after_the_flag(look):
            found.append(f"{arrivals.landed.table}: files came after {FLAG}, and are taken in: {_first(late)}")
        if again := arrivals.landed_after_expiry(look):
            found.append(
                f"{contract.dataset}: files of {_first(again)} came or changed after their rows had expired, and "
                "are not taken in; land them in an hour or day of now, or remove them"
            )
    return found


def removed(contract: Contract, look: Snapshot) -> str | None:
    """Return the warning that published partitions are not in the landing zone any more; None if all are, or expired.

    What is written whole shows the newest delivery only.
    """
    source = landed_input(contract)
    if source is None or contract.partitioning is None:
        return None
    there = {partition.key for partition in look.zone.scan(source.table, source.grain)}
    published = look.published(contract.dataset)
    gone = sorted(key for key, entry in published.items() if entry.expired is None and key not in there)
    if not gone:
        return None
    return (
        f"{contract.dataset}: the landed files of {_first(gone)} are gone: their rows stay, and cannot "
        "be computed again; bring them back from a backup"
    )


def refusals(contracts: Iterable[Contract], landing: Path | LandingZone) -> list[PlatformError]:
    """List the errors of refused links and entries that block publication, those of access logs included."""
    refused = [partition for contract in contracts for partition in Arrivals.of(contract, landing).refused]
    links = [
        *(link for partition in refused for link in partition.links),
        *refused_logs(LandingZone.of(landing).folder),
    ]
    return [link.refusal() for link in links]


def _counted(names: Sequence[str], noun: str) -> str:
    return f"1 {noun} is" if len(names) == 1 else f"{len(names)} {noun}s are"


def _first(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
