"""The reach of a table that is written whole and shows the last weeks that have ended (Dataset Materializer)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from blogdata.lake.commit import WHOLE_TABLE, Entry
from blogdata.publish.contract import Edge, Look, Wanted
from blogdata.publish.partitions import Grain, coarser, key_of, start_of


@dataclass(frozen=True, kw_only=True)
class Span:
    """The weeks that the table shows."""

    first: str
    last: str
    open: str
    hours: frozenset[str]


@dataclass(frozen=True, kw_only=True)
class Ended:
    """A table reads the hours of the last weeks that have ended: a week has ended once an hour of a later one has rows.

    The hours of the week that has not ended make the table stale only by ending the week before.
    """

    weeks: int
    newest: str

    def behind(self, look: Look, edge: Edge) -> Mapping[str, str]:
        """Find the table if an hour of an ended week is newer than what it has read, or if another week has ended."""
        span = self.span(look.published(edge.above))
        if span is None:
            return {}
        version = max(look.published(edge.above)[hour].version for hour in span.hours)
        entry = look.published(edge.below.dataset).get(WHOLE_TABLE)
        read = -1 if entry is None else entry.inputs.get(edge.above, -1)
        if entry is not None and read >= version and entry.measures.get(self.newest) == span.last:
            return {}
        return {WHOLE_TABLE: f"{edge.above} version {version} up to the week {span.last}"}

    def reached(self, look: Look, edge: Edge, wanted: Wanted, asked: Wanted) -> Mapping[str, str]:
        """Return the table if an hour of its weeks runs."""
        keys = wanted.get(edge.above, {})
        span = self.span(look.published(edge.above), keys)
        read = () if span is None else sorted(keys.keys() & span.hours)
        return {WHOLE_TABLE: read[0]} if read else {}

    def span(self, published: Mapping[str, Entry], running: Iterable[str] = ()) -> Span | None:
        """Find the weeks that the table shows, and their hours.

        Returns:
            The span; None if no week has ended.
        """
        there = {hour for hour, entry in published.items() if entry.rows_kept} | (set(running) - published.keys())
        if not there:
            return None
        open_week = coarser(max(there), Grain.HOUR, Grain.WEEK)
        first = key_of(start_of(open_week, Grain.WEEK) - self.weeks * Grain.WEEK.length, Grain.WEEK)
        ended = [hour for hour in there if first <= hour < open_week]
        if not ended:
            return None
        hours = frozenset(hour for hour in {*published, *there} if first <= hour < open_week)
        return Span(first=first, last=coarser(max(ended), Grain.HOUR, Grain.WEEK), open=max(there), hours=hours)
