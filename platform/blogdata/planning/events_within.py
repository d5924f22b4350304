"""A reach: a longer period reads the events of its hours where they arrived, without a dataset by event hour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from blogdata.lake.commit import Entry
from blogdata.planning.reach import Within
from blogdata.publish.contract import Edge, Look, Wanted
from blogdata.publish.partitions import Grain, coarser


@dataclass(frozen=True, kw_only=True)
class EventsWithin(Within):
    """A period reads every arrival that has rows for its hours, but of some kinds; without rows there is no period."""

    breakdown: str
    but: frozenset[str]

    def required(self, look: Look, edge: Edge) -> Mapping[str, int]:
        """Return the newest version among the arrivals of each period; a higher one if rows disappeared."""
        arrivals = look.published(edge.above)
        newest: dict[str, int] = {}
        rows: dict[str, int] = {}
        for entry in arrivals.values():
            for period, count in self._rows(entry, edge).items():
                newest[period] = max(entry.version, newest.get(period, -1))
                rows[period] = rows.get(period, 0) + count
        for arrival, entry in arrivals.items():
            # An arrival without such rows counts among the hours that are there.
            own = coarser(arrival, Grain.HOUR, edge.grain)
            if own in newest:
                newest[own] = max(entry.version, newest[own])
        for period, entry in look.published(edge.below.dataset).items():
            if entry.rows_in != rows.get(period, 0):
                newest[period] = max(newest.get(period, -1), entry.inputs.get(edge.above, -1) + 1)
        return newest

    def reached(self, look: Look, edge: Edge, wanted: Wanted, asked: Wanted) -> Mapping[str, str]:
        """Find the periods that the newest publications of the arrivals have rows for."""
        keys = wanted.get(edge.above, {})
        published = look.published(edge.above)
        touched: dict[str, str] = {}
        for key in sorted(keys & published.keys()):
            for period in self._rows(published[key], edge):
                touched.setdefault(period, key)
        return touched

    def _rows(self, entry: Entry, edge: Edge) -> Mapping[str, int]:
        rows: dict[str, int] = {}
        for (hour, *_, kind), count in entry.breakdowns[self.breakdown].items():
            if hour is not None and kind not in self.but:
                period = coarser(hour, Grain.HOUR, edge.grain)
                rows[period] = rows.get(period, 0) + count
        return rows
