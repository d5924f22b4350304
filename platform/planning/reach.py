"""The ways in which partitions of a dataset correspond to those of its inputs.

One rule tells what is behind: a partition that was published from an older version of an input than the newest
publication among the partitions it must have read. A reach says which these are, as versions, and finds the way back
for replays.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate

from evidence.executions import due, undone
from lake.commit import WHOLE_TABLE, Entry
from patterns.error_management import dynamic_late_data_integrator, late_data_detector
from patterns.error_management.late_data_detector import PartitionReading
from planning.finality import open_periods
from publish.contract import Arrival, Edge, Look, Wanted
from publish.partitions import Grain, coarser, finer

_ALL = ""


@dataclass(frozen=True, kw_only=True)
class _Versioned:
    """A reach that says which version of the input each partition must have read."""

    def behind(self, look: Look, edge: Edge) -> Mapping[str, str]:
        """Find the partitions that have read less than they must."""
        published = look.published(edge.below.dataset)
        return {
            key: f"{edge.above} version {version}"
            for key, version in sorted(self.required(look, edge).items())
            if key not in published or published[key].inputs.get(edge.above, -1) < version
        }

    def required(self, look: Look, edge: Edge) -> Mapping[str, int]:
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Same(_Versioned):
    """A partition reads the one of the same key."""

    def required(self, look: Look, edge: Edge) -> Mapping[str, int]:
        """Give the version of each input partition."""
        return {key: entry.version for key, entry in look.published(edge.above).items()}

    def reached(self, look: Look, edge: Edge, wanted: Wanted, asked: Wanted) -> Mapping[str, str]:
        """Find the partitions of the same keys."""
        return {key: key for key in wanted.get(edge.above, {})}


@dataclass(frozen=True, kw_only=True)
class Whole(_Versioned):
    """A table that is written whole reads all partitions."""

    def required(self, look: Look, edge: Edge) -> Mapping[str, int]:
        """Give the newest version of the input."""
        entries = look.published(edge.above).values()
        return {WHOLE_TABLE: max(entry.version for entry in entries)} if entries else {}

    def reached(self, look: Look, edge: Edge, wanted: Wanted, asked: Wanted) -> Mapping[str, str]:
        """The table is reached by any partition."""
        keys = wanted.get(edge.above, {})
        return {WHOLE_TABLE: min(keys)} if keys else {}


@dataclass(frozen=True, kw_only=True)
class Within(_Versioned):
    """A period reads the hours within it; with a lookback, only while it is not final (Aligned Fan-In)."""

    def required(self, look: Look, edge: Edge) -> Mapping[str, int]:
        """Give the newest version among the hours of each period that is not final."""
        newest: dict[str, int] = {}
        for hour, entry in look.published(edge.above).items():
            period = coarser(hour, Grain.HOUR, _grain(edge))
            newest[period] = max(entry.version, newest.get(period, -1))
        published = look.published(edge.below.dataset)
        return {key: newest[key] for key in open_periods(edge.below, newest, published, max(newest, default=""))}

    def reached(self, look: Look, edge: Edge, wanted: Wanted, asked: Wanted) -> Mapping[str, str]:
        """Find the periods around the hours."""
        hours = wanted.get(edge.above, {})
        if not hours:
            return {}
        periods = {coarser(hour, Grain.HOUR, _grain(edge)): hour for hour in sorted(hours, reverse=True)}
        newest = coarser(max([*hours, *look.published(edge.above)]), Grain.HOUR, _grain(edge))
        return {
            key: periods[key] for key in open_periods(edge.below, periods, look.published(edge.below.dataset), newest)
        }

    def parts(self, key: str, grain: Grain) -> Sequence[str]:
        """List the hours of a period."""
        return finer(key, grain, Grain.HOUR)


@dataclass(frozen=True, kw_only=True)
class EventsOf(_Versioned):
    """An event partition reads every arrival that has rows of it (Dynamic Late Data Integrator).

    Args:
        breakdown: Name of the input's breakdown whose first column is the event partition.
    """

    breakdown: str

    def required(self, look: Look, edge: Edge) -> Mapping[str, int]:
        """Give the newest version among the arrivals of each event partition, and more where rows are gone again."""
        lines = dynamic_late_data_integrator.state(
            look.published(edge.above),
            look.published(edge.below.dataset),
            source=edge.above,
            breakdown=self.breakdown,
        )
        # Rows that are gone again leave no arrival that names the partition: it needs a newer look at all of them.
        return {
            key: line.updated if line.processed is None else max(line.updated, line.processed + line.behind)
            for key, line in lines.items()
        }

    def reached(self, look: Look, edge: Edge, wanted: Wanted, asked: Wanted) -> Mapping[str, str]:
        """Find the event partitions of the arrivals, as far as these were published, and the arrivals' own keys."""
        keys = wanted.get(edge.above, {})
        touched = {key: key for key in keys}
        for key, entry in sorted(look.published(edge.above).items()):
            if key in keys:
                for hour, *_ in entry.breakdowns[self.breakdown]:
                    if hour is not None:
                        touched.setdefault(hour, key)
        return touched


@dataclass(frozen=True, kw_only=True)
class Outdated:
    """Publications of neighbours have joined, or parted, what a partition has (a dataset reads itself).

    Args:
        source: The input whose version tells which of two neighbours has seen more.
    """

    source: str

    def behind(self, look: Look, edge: Edge) -> Mapping[str, str]:
        """Find the partitions that another one has outdated.

        What counts is what they have seen, not who was published first: a partition may have been computed for long,
        from what had arrived when that began.
        """
        published = look.published(edge.below.dataset)
        found = sorted(
            (entry.version, key, entry.inputs[self.source]) for entry in published.values() for key in entry.outdates
        )
        return {
            key: f"outdated by version {version}"
            for version, key, seen in found
            if key in published and published[key].inputs[self.source] < seen
        }

    def reached(self, look: Look, edge: Edge, wanted: Wanted, asked: Wanted) -> Mapping[str, str]:
        """None: which ones are outdated shows when the partitions were computed."""
        return {}


@dataclass(frozen=True, kw_only=True)
class Watermarked(Same):
    """A partition reads the one of the same key, and is judged by a watermark that all partitions before it decide.

    Args:
        allowed: How late an event may be.
        measure: The input's measure with the newest event time of a partition.
    """

    allowed: timedelta
    measure: str

    def behind(self, look: Look, edge: Edge) -> Mapping[str, str]:
        """Find the partitions whose input, or whose watermark, is another one by now."""
        arrivals, captured = look.published(edge.above), look.published(edge.below.dataset)
        marks = self.marks(arrivals, sorted(set(arrivals) & set(captured)))
        moved = {key: mark for key, mark in marks.items() if captured[key].landed != mark}
        return {**moved, **super().behind(look, edge)}

    def watermarks(self, arrivals: Mapping[str, Entry], keys: Sequence[str]) -> dict[str, datetime | None]:
        """Compute the watermarks that hold for some partitions.

        Args:
            arrivals: Publications of the input, of all partitions before the last one asked about.
            keys: The partitions.

        Returns:
            A watermark for each of them, None where nothing can be late.
        """
        readings = [
            PartitionReading(key=key, max_event_time=_instant(entry.measures[self.measure]))
            for key, entry in sorted(arrivals.items())
        ]
        found = late_data_detector.watermarks(readings, self.allowed, keys=keys)
        return {key: found[key] for key in keys}

    def marks(self, arrivals: Mapping[str, Entry], keys: Sequence[str]) -> dict[str, str]:
        """Give the watermarks as they are kept with the partitions they decided."""
        return {
            key: "no watermark" if mark is None else f"watermark {mark.isoformat()}"
            for key, mark in self.watermarks(arrivals, keys).items()
        }


@dataclass(frozen=True, kw_only=True)
class AsOf(_Versioned):
    """An hour reads a history as of its events: deliveries of its day or before, and the first one, concern it.

    Args:
        delivered: The dataset with the full deliveries the history is made of.
        landed: Their folder in the landing zone, where the dataset is the newest one and keeps the earlier ones as
            copies; None: its partitions are the days of the deliveries.
    """

    delivered: str
    landed: str | None = None

    def required(self, look: Look, edge: Edge) -> Mapping[str, int]:
        """Give, of each published hour, the version of the history that first had all deliveries that concern it."""
        history = look.history(edge.above)
        read = [(entry.inputs.get(self.delivered, -1), entry.version) for entry in history]
        integrated = max((version for version, _ in read), default=-1)
        # What the history has not read yet cannot help an hour that runs again.
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
        """Find the hours since the deliveries that run again; all of them when the history itself is asked for."""
        hours = look.published(edge.below.dataset)
        if asked.get(edge.above):
            return dict.fromkeys(hours, _ALL)
        if not wanted.get(self.delivered):
            return {}
        day = self._earliest(look, wanted[self.delivered])
        # What the first delivery names was there before it.
        reaches_all = day <= (first_delivery(self._deliveries(look)) or day)
        return {hour: day for hour in hours if reaches_all or hour[:10] >= day}

    def _deliveries(self, look: Look) -> list[tuple[str, Entry]]:
        """List the deliveries that were published, each with its day."""
        if self.landed is None:
            return list(look.published(self.delivered).items())
        return [(delivered_on(entry), entry) for entry in look.history(self.delivered)]

    def _earliest(self, look: Look, keys: Iterable[str]) -> str:
        """Find the first day whose delivery is loaded when partitions of the deliveries run again."""
        if self.landed is None:
            return min(keys)
        # Whichever was loaded before, the newest one that has landed is loaded next.
        there = [partition.key for partition in look.landed(self.landed, Grain.DAY)]
        return max(there or (day for day, _ in self._deliveries(look)), default="")


@dataclass(frozen=True, kw_only=True)
class InTurn:
    """Executions build on one another: what was taken from the table is merged again, and all that came later."""

    def behind(self, look: Look, edge: Edge) -> Mapping[str, str]:
        """Find the executions that a restoration has taken from the table."""
        marks = look.executions(edge.below.dataset)
        return dict.fromkeys(undone(marks), f"taken back; {len(marks)} executions so far")

    def reached(self, look: Look, edge: Edge, wanted: Wanted, asked: Wanted) -> Mapping[str, str]:
        """Find the later executions.

        Raises:
            ReplayTooLong: More would follow than the contract allows.
        """
        keys = wanted.get(edge.below.dataset, {})
        if not keys:
            return {}
        return {key: f"of {min(keys)}" for key in due(edge.below, look.executions(edge.below.dataset), keys)}


@dataclass(frozen=True, kw_only=True)
class Landed:
    """A partition reads what has landed for it; a table that is written whole reads the newest delivery.

    Args:
        table: Folder in the landing zone.
        grain: Length of what one folder holds.
    """

    table: str
    grain: Grain

    def behind(self, look: Look, edge: Edge) -> Mapping[str, str]:
        """Find what has landed and is not what was published."""
        published = look.published(edge.below.dataset)
        ready = look.landed(self.table, self.grain)
        if edge.below.partitioning is None:
            newest = max(ready, key=lambda delivery: delivery.key, default=None)
            state = None if newest is None else f"{newest.key}:{newest.fingerprint}"
            entry = published.get(WHOLE_TABLE)
            return {} if state is None or (entry and entry.landed == state) else {WHOLE_TABLE: state}
        # What is taken back has the fingerprint it had before: what it replaces tells the two apart.
        return {
            partition.key: f"{partition.fingerprint} over {_replaced(partition, published)}"
            for partition in not_published(ready, published)
        }

    def reached(self, look: Look, edge: Edge, wanted: Wanted, asked: Wanted) -> Mapping[str, str]:
        """None: nobody runs the landing zone again."""
        return {}


SAME = Same()
WHOLE = Whole()
WITHIN = Within()


def not_published(ready: Iterable[Arrival], published: Mapping[str, Entry]) -> list[Arrival]:
    """Keep the landed partitions whose files are not those that were published."""
    return [
        partition
        for partition in ready
        if partition.key not in published or published[partition.key].landed != partition.fingerprint
    ]


def _replaced(partition: Arrival, published: Mapping[str, Entry]) -> str:
    return f"version {published[partition.key].version}" if partition.key in published else "nothing"


def first_delivery(deliveries: Iterable[tuple[str, Entry]]) -> str | None:
    """Find the first day on which something usable was delivered.

    Args:
        deliveries: Days and what was published of them.
    """
    return min((day for day, entry in deliveries if usable_rows(entry)), default=None)


def delivered_on(delivery: Entry) -> str:
    """Find the day of a full delivery in a dataset that keeps copies; one without a row names it by what landed."""
    day = delivery.measures.get("load_date") or (delivery.landed or "").split(":")[0]
    return str(day)


def usable_rows(delivery: Entry) -> int:
    """Count the rows of a delivery that are no dead letters; a day without any is no delivery."""
    return delivery.rows_out - int(delivery.measures["dead"])


def _grain(edge: Edge) -> Grain:
    assert edge.below.partitioning is not None
    return edge.below.partitioning.grain


def _instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text.replace("Z", "+00:00"))
