"""How the partitions of a dataset correspond to those of its inputs; each kind of correspondence is a reach.

A partition is stale if it was published from an older version of an input than the newest publication among the input
partitions it has to read. Most reaches compute that version for each partition. For replays, every reach also works in
the other direction: from input partitions to the partitions that read them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate
from typing import TypeVar

from blogdata.contract.contract import Arrival, Contract, Edge, Look, Wanted
from blogdata.contract.partitions import Grain, coarser, finer, key_of
from blogdata.contract.publication import WHOLE_TABLE, Entry
from blogdata.landing import readiness_marker
from blogdata.ledger.executions import due, undone
from blogdata.patterns.error_management import dynamic_late_data_integrator, late_data_detector
from blogdata.patterns.error_management.late_data_detector import Strategy
from blogdata.planning import clock
from blogdata.planning.clock import lookback_of, open_periods


def first_delivery(deliveries: Iterable[tuple[str, Entry]]) -> str | None:
    return min((day for day, entry in deliveries if delivered_rows(entry)), default=None)


def delivered_on(delivery: Entry) -> str:
    """Return the day of a full delivery: the measure `load_date`, or the day in `landed` if it has no rows."""
    day = delivery.measures.get("load_date") or (delivery.landed or "").split(":")[0]
    return str(day)


def usable_rows(delivery: Entry) -> int:
    return delivery.rows_out - int(delivery.measures["dead"])


def changed_rows(day: Entry) -> int:
    """Count the changes of a day, rejected ones too; all other rows are of its full delivery."""
    return int(day.measures.get("changes", 0))


def delivered_rows(delivery: Entry) -> int:
    """Count the usable rows of a full delivery, without changes of the same day; a day without any is no delivery."""
    return usable_rows(delivery) - (changed_rows(delivery) - int(delivery.measures.get("dead_changes", 0)))


@dataclass(frozen=True, kw_only=True)
class Continued:
    """A version of a table to continue from, and the days of the later deliveries that it lacks, in order."""

    version: int
    last: str
    left: tuple[str, ...]


def continued(publications: Iterable[Entry], loads: Iterable[Entry], now: Mapping[str, int]) -> Iterator[Continued]:
    """Find the versions of a table that only lack deliveries after those they have read, the newest first."""
    ordered = sorted(loads, key=lambda load: load.version)
    for entry in sorted(publications, key=lambda entry: entry.version, reverse=True):
        newest = {load.partition: load for load in ordered if load.version <= entry.inputs.get(load.dataset, -1)}
        read = {day: load.version for day, load in newest.items() if usable_rows(load)}
        left = tuple(sorted(now.keys() - read.keys()))
        if read and read.items() <= now.items() and (not left or left[0] > max(read)):
            yield Continued(version=entry.version, last=max(read), left=left)


class NotReplayed:
    """A reach of which a replay plans nothing: what changes below is known only after what is above has run."""

    def reached(self, look: Look, edge: Edge, wanted: Wanted, asked: Wanted) -> Mapping[str, str]:
        return {}


@dataclass(frozen=True, kw_only=True)
class _Versioned(ABC):
    """A reach that computes the version of the input that each partition must have read."""

    def behind(self, look: Look, edge: Edge) -> Mapping[str, str]:
        """Find the partitions that were never published, or that read an older version than required."""
        published = look.published(edge.below.dataset)
        return {
            key: f"{edge.above} version {version}"
            for key, version in sorted(self.required(look, edge).items())
            if key not in published or published[key].inputs.get(edge.above, -1) < version
        }

    @abstractmethod
    def required(self, look: Look, edge: Edge) -> Mapping[str, int]:
        """Return the version of the input that each partition must have read."""


@dataclass(frozen=True, kw_only=True)
class Same(_Versioned):
    """A partition reads the input partition with the same key; late rows are due by the days of `delivered`."""

    delivered: str | None = None

    def required(self, look: Look, edge: Edge) -> Mapping[str, int]:
        return due_versions(look, edge.above, self.delivered)

    def came(self, look: Look, edge: Edge, keys: Iterable[str], *, until: int) -> Mapping[str, Sequence[str]]:
        above, below = look.published(edge.above), look.published(edge.below.dataset)
        slices = {}
        for key in above.keys() & set(keys):
            entry, seen = above[key], below[key].inputs.get(edge.above, -1)
            # The input had the earlier publication's rows at every version from it up to the addition.
            if entry.added and entry.added.after <= seen < entry.version <= until:
                slices[key] = entry.added.slices
        return slices

    def reached(self, look: Look, edge: Edge, wanted: Wanted, asked: Wanted) -> Mapping[str, str]:
        return {key: key for key in wanted.get(edge.above, {})}


@dataclass(frozen=True, kw_only=True)
class Whole(_Versioned):
    """A table that is written whole reads all partitions."""

    def required(self, look: Look, edge: Edge) -> Mapping[str, int]:
        entries = look.published(edge.above).values()
        return {WHOLE_TABLE: max(entry.changed for entry in entries)} if entries else {}

    def reached(self, look: Look, edge: Edge, wanted: Wanted, asked: Wanted) -> Mapping[str, str]:
        keys = wanted.get(edge.above, {})
        return {WHOLE_TABLE: min(keys)} if keys else {}


@dataclass(frozen=True, kw_only=True)
class Within(_Versioned):
    """A period reads the hours within it; with a lookback, only while it is not final (Aligned Fan-In).

    Late rows, and new hours of a week, are due by the days of `delivered` (:func:`due_versions`).
    """

    delivered: str | None = None

    def required(self, look: Look, edge: Edge) -> Mapping[str, int]:
        newest: dict[str, int] = {}
        # What is computed once a night, until it is final, waits for nothing else.
        delivered = None if lookback_of(edge.below) else self.delivered
        for hour, version in due_versions(look, edge.above, delivered, by_day=edge.grain is Grain.WEEK).items():
            period = coarser(hour, Grain.HOUR, edge.grain)
            newest[period] = max(version, newest.get(period, -1))
        published = look.published(edge.below.dataset)
        return {key: newest[key] for key in open_periods(edge.below, newest, published, max(newest, default=""))}

    def reached(self, look: Look, edge: Edge, wanted: Wanted, asked: Wanted) -> Mapping[str, str]:
        hours = wanted.get(edge.above, {})
        if not hours:
            return {}
        periods = {coarser(hour, Grain.HOUR, edge.grain): hour for hour in sorted(hours, reverse=True)}
        newest = coarser(max([*hours, *look.published(edge.above)]), Grain.HOUR, edge.grain)
        published = look.published(edge.below.dataset)
        return {key: periods[key] for key in open_periods(edge.below, periods, published, newest)}

    def parts(self, key: str, grain: Grain) -> Sequence[str]:
        return finer(key, grain, Grain.HOUR)

    def came(self, look: Look, edge: Edge, keys: Iterable[str], *, until: int) -> Mapping[str, Sequence[str]]:
        """Find the periods that only lack new hours, and rows that were added to hours they have read.

        A slice is a new hour, as its key, or what one slice has added to an hour: `hour slice`.
        """
        above, below = look.published(edge.above), look.published(edge.below.dataset)
        first: dict[str, int] = {}
        for entry in look.history(edge.above):
            first.setdefault(entry.partition, entry.version)
        slices = {}
        for key in keys:
            seen = below[key].inputs.get(edge.above, -1)
            if seen < min(first.values(), default=0):
                # What it has read is no part of the table's history: the table was lost, and begun anew.
                continue
            hours = [hour for hour in self.parts(key, edge.grain) if hour in above and above[hour].changed > seen]
            added = [_slices(above[hour], first[hour], seen) if above[hour].version <= until else [] for hour in hours]
            if hours and all(added):
                slices[key] = [name for names in added for name in names]
        return slices


@dataclass(frozen=True, kw_only=True)
class EventsOf(_Versioned):
    """An event partition reads every arrival that has rows for it (Dynamic Late Data Integrator)."""

    breakdown: str

    def required(self, look: Look, edge: Edge) -> Mapping[str, int]:
        """Return the newest version among the arrivals of each event partition; a higher one if rows disappeared."""
        lines = dynamic_late_data_integrator.state(
            look.published(edge.above), look.published(edge.below.dataset), source=edge.above, breakdown=self.breakdown
        )
        # After rows disappeared, no arrival may name the partition any more: it has to read all arrivals again.
        return {
            key: line.updated if line.processed is None else max(line.updated, line.processed + line.behind)
            for key, line in lines.items()
        }

    def came(self, look: Look, edge: Edge, keys: Iterable[str], *, until: int) -> Mapping[str, Sequence[str]]:
        arrivals, integrated = look.published(edge.above), look.published(edge.below.dataset)
        asked, names = {key: integrated[key] for key in keys}, {"source": edge.above, "breakdown": self.breakdown}
        return dynamic_late_data_integrator.later_arrivals(arrivals, asked, until=until, **names)

    def reached(self, look: Look, edge: Edge, wanted: Wanted, asked: Wanted) -> Mapping[str, str]:
        keys = wanted.get(edge.above, {})
        touched = {key: key for key in keys}
        published = look.published(edge.above)
        for key in sorted(keys & published.keys()):
            for hour, *_ in published[key].breakdowns[self.breakdown]:
                if hour is not None:
                    touched.setdefault(hour, key)
        return touched


@dataclass(frozen=True, kw_only=True)
class Outdated(NotReplayed):
    """A partition is outdated by a neighbour's publication that joined or split its rows (a dataset reads itself)."""

    source: str

    def behind(self, look: Look, edge: Edge) -> Mapping[str, str]:
        published = look.published(edge.below.dataset)
        outdated = sorted(
            (entry.version, key, entry.inputs[self.source]) for entry in published.values() for key in entry.makes_stale
        )
        # Not the order of publication decides: a long computation reads the arrivals of its start, and publishes last.
        return {
            key: f"outdated by version {version}"
            for version, key, seen in outdated
            if key in published and published[key].inputs[self.source] < seen
        }


@dataclass(frozen=True, kw_only=True)
class Watermarked(Same):
    """A partition reads the one with the same key, and its watermark depends on all input partitions before it.

    `measures` maps a source to the input's measure with its newest event time; older publications may lack it.
    """

    allowed: timedelta
    measures: Mapping[str, str]
    combined: Strategy

    def behind(self, look: Look, edge: Edge) -> Mapping[str, str]:
        arrivals, captured = look.published(edge.above), look.published(edge.below.dataset)
        marks = self.marks(arrivals, sorted(set(arrivals) & set(captured)))
        moved = {key: mark for key, mark in marks.items() if captured[key].landed != mark}
        return {**moved, **super().behind(look, edge)}

    def watermarks(self, arrivals: Mapping[str, Entry], keys: Sequence[str]) -> dict[str, datetime | None]:
        """Compute the watermarks of some partitions from all before them; None if no row can be late."""
        readings = {
            key: [(source, _instant(entry.measures.get(measure))) for source, measure in self.measures.items()]
            for key, entry in arrivals.items()
        }
        marks = late_data_detector.progress(readings, self.allowed, strategy=self.combined, keys=keys)
        return {key: marks[key] for key in keys}

    def marks(self, arrivals: Mapping[str, Entry], keys: Sequence[str]) -> dict[str, str]:
        """Return the watermarks as the text that is stored with each publication, in `landed`."""
        return {
            key: "no watermark" if mark is None else f"watermark {mark.isoformat()}"
            for key, mark in self.watermarks(arrivals, keys).items()
        }


@dataclass(frozen=True, kw_only=True)
class AsOf(_Versioned):
    """An hour joins a history as of its events: it depends on the days up to the first full delivery, or to its own.

    `landed` is the landing-zone folder of deliveries of which the dataset shows only the newest; None if each delivery
    is a partition.
    """

    delivered: str
    landed: str | None = None

    def required(self, look: Look, edge: Edge) -> Mapping[str, int]:
        """Return the first version of the history that has all deliveries on which an hour depends."""
        history = look.history(edge.above)
        read = [(entry.inputs.get(self.delivered, -1), entry.version) for entry in history]
        integrated = max((version for version, _ in read), default=-1)
        # A delivery that the history has not read yet makes no hour stale: running the hour again would not help.
        taken_in = [(day, entry) for day, entry in self._deliveries(look) if entry.version <= integrated]
        taken_in.sort(key=lambda delivery: delivery[0])
        days = [day for day, _ in taken_in]
        first = bisect_right(days, first_delivery(taken_in) or "")
        newest = list(accumulate((entry.version for _, entry in taken_in), max))
        required = {}
        for hour in look.published(edge.below.dataset):
            count = max(bisect_right(days, hour[:10]), first)
            if count:
                required[hour] = next(version for seen, version in read if seen >= newest[count - 1])
        return required

    def reached(self, look: Look, edge: Edge, wanted: Wanted, asked: Wanted) -> Mapping[str, str]:
        hours = look.published(edge.below.dataset)
        if asked.get(edge.above):
            return dict.fromkeys(hours, "")
        if not wanted.get(self.delivered):
            return {}
        day = self._earliest(look, wanted[self.delivered])
        # The rows of the first delivery are valid for all earlier hours, too.
        reaches_all = day <= (first_delivery(self._deliveries(look)) or day)
        return {hour: day for hour in hours if reaches_all or hour[:10] >= day}

    def _deliveries(self, look: Look) -> list[tuple[str, Entry]]:
        if self.landed is None:
            return list(look.published(self.delivered).items())
        return [(delivered_on(entry), entry) for entry in look.history(self.delivered)]

    def _earliest(self, look: Look, keys: Iterable[str]) -> str:
        if self.landed is None:
            return min(keys)
        # The next load always takes the newest landed delivery.
        landed = [partition.key for partition in look.landed(self.landed, Grain.DAY)]
        return max(landed or (day for day, _ in self._deliveries(look)), default="")


@dataclass(frozen=True, kw_only=True)
class InTurn:
    """Executions depend on their predecessors: undone ones are merged again, and all later ones."""

    def behind(self, look: Look, edge: Edge) -> Mapping[str, str]:
        marks = look.history(edge.below.dataset)
        return dict.fromkeys(undone(marks), f"taken back; {len(marks)} executions so far")

    def reached(self, look: Look, edge: Edge, wanted: Wanted, asked: Wanted) -> Mapping[str, str]:
        """Find the executions that run again and all later ones; raises :class:`ReplayTooLong` beyond the limit."""
        keys = wanted.get(edge.below.dataset, {})
        if not keys:
            return {}
        return {key: f"of {min(keys)}" for key in due(edge.below, look.history(edge.below.dataset), keys)}


@dataclass(frozen=True, kw_only=True)
class Landed(NotReplayed):
    """A partition reads its landed files; a table that is written whole reads the newest delivery."""

    table: str
    grain: Grain

    def behind(self, look: Look, edge: Edge) -> Mapping[str, str]:
        published = look.published(edge.below.dataset)
        ready = look.landed(self.table, self.grain)
        if edge.below.partitioning is None:
            newest = max(ready, key=lambda delivery: delivery.key, default=None)
            entry = published.get(WHOLE_TABLE)
            # A delivery that is gone from the landing zone stays published: an older one does not take its place.
            gone = newest is not None and entry is not None and delivered_on(entry) > newest.key
            if newest is None or gone or (entry is not None and readiness_marker.is_published(newest, entry.landed)):
                return {}
            return {WHOLE_TABLE: f"{newest.key}:{newest.fingerprint}"}
        # A reverted delivery has its old state again; the replaced version makes the text unique.
        return {
            part.key: f"{part.fingerprint} over {published[part.key].version if part.key in published else 'nothing'}"
            for part in not_published(ready, published)
        }


SAME = Same()
WHOLE = Whole()
WITHIN = Within()


_Arrival = TypeVar("_Arrival", bound=Arrival)


def not_published(ready: Iterable[_Arrival], published: Mapping[str, Entry]) -> list[_Arrival]:
    return [
        partition
        for partition in ready
        if partition.key not in published
        or not readiness_marker.is_published(partition, published[partition.key].landed)
    ]


_PATIENCE = timedelta(hours=6)
"""How long after a day its last hour is waited for."""


def due_versions(look: Look, above: str, delivered: str | None, *, by_day: bool = False) -> dict[str, int]:
    """Return the version of each hour that its readers must have read.

    Rows that are added to hours of earlier days are due once a day: when the last hour of the day of their arrival is
    there, when the next one begins, or when it should have. What replaces an hour is due at once; so is everything if
    `delivered`, the dataset of the hours of arrival, is None. With `by_day`, new hours of the newest day wait for its
    end, too.
    """
    hours, published = look.published(delivered) if delivered else {}, look.published(above)
    due = {hour: entry.changed for hour, entry in published.items()}
    day = max(hours, default="")[:10]
    if not hours or f"{day}T23" in hours or day < key_of(clock.now() - _PATIENCE, Grain.DAY):
        return due

    def is_late(entry: Entry) -> bool:
        return entry.added is not None and all(arrival.startswith(day) for arrival in entry.added.slices)

    new = {hour for hour in published if by_day and hour.startswith(day)}
    waiting = {hour for hour, entry in published.items() if hour[:10] < day and is_late(entry)} | new
    if waiting:
        due.update(dict.fromkeys(waiting, 0))
        for entry in look.history(above):
            if entry.partition in waiting - new and not is_late(entry):
                due[entry.partition] = entry.changed
            new.discard(entry.partition)
    return due


def _slices(hour: Entry, first: int, seen: int) -> list[str]:
    """Return the slices of an hour that a reader of a version lacks; none if the rows it has read were replaced.

    None, too, for a new hour without rows: it counts as present, which no added row would say.
    """
    if first > seen:
        return [hour.partition] if hour.rows_out else []
    added = hour.added
    return [f"{hour.partition} {name}" for name in added.slices] if added and added.after <= seen else []


def landed_input(contract: Contract) -> Landed | None:
    return next((read.reach for read in contract.reads if isinstance(read.reach, Landed)), None)


def _instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text.replace("Z", "+00:00"))
