"""Reaches that few datasets have, beside those of :mod:`blogdata.planning.reach`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise

from blogdata.contract.contract import Edge, Look, Wanted
from blogdata.contract.partitions import Grain, between, coarser, following, key_of, previous, start_of
from blogdata.contract.publication import WHOLE_TABLE, Entry
from blogdata.planning.reach import NotReplayed, Same, Within, due_versions


@dataclass(frozen=True, kw_only=True)
class EventsWithin(Within):
    """A period reads every arrival that has rows for its hours, but of some kinds; without rows there is no period."""

    breakdown: str
    but: frozenset[str]

    def required(self, look: Look, edge: Edge) -> Mapping[str, int]:
        arrivals = look.published(edge.above)
        newest, rows = dict[str, int](), Counter[str]()
        for entry in arrivals.values():
            for period, count in self._rows(entry, edge).items():
                newest[period] = max(entry.version, newest.get(period, -1))
                rows[period] += count
        for arrival, entry in arrivals.items():
            # An arrival without such rows counts among the hours that are present.
            period = coarser(arrival, Grain.HOUR, edge.grain)
            if period in newest:
                newest[period] = max(entry.version, newest[period])
        for period, entry in look.published(edge.below.dataset).items():
            if entry.rows_in != rows[period]:
                newest[period] = max(newest.get(period, -1), entry.inputs.get(edge.above, -1) + 1)
        return newest

    def reached(self, look: Look, edge: Edge, wanted: Wanted, asked: Wanted) -> Mapping[str, str]:
        keys = wanted.get(edge.above, {})
        published = look.published(edge.above)
        touched: dict[str, str] = {}
        for key in sorted(keys & published.keys()):
            for period in self._rows(published[key], edge):
                touched.setdefault(period, key)
        return touched

    def _rows(self, entry: Entry, edge: Edge) -> Counter[str]:
        rows = Counter[str]()
        for (hour, *_, kind), count in entry.breakdowns[self.breakdown].items():
            if hour is not None and kind not in self.but:
                rows[coarser(hour, Grain.HOUR, edge.grain)] += count
        return rows


@dataclass(frozen=True, kw_only=True)
class Complete(Within):
    """A period reads the hours within it, once all of them are published; then it stays up to date.

    An hour in which nothing happened is published, too, if its empty delivery is flagged. A period one of whose hours
    never comes is not computed by itself.
    """

    def required(self, look: Look, edge: Edge) -> Mapping[str, int]:
        versions, hours = super().required(look, edge), look.published(edge.above).keys()
        return {key: version for key, version in versions.items() if self._is_due(look, edge, key, hours)}

    def reached(self, look: Look, edge: Edge, wanted: Wanted, asked: Wanted) -> Mapping[str, str]:
        causes = super().reached(look, edge, wanted, asked)
        hours = look.published(edge.above).keys() | wanted.get(edge.above, {}).keys()
        return {key: hour for key, hour in causes.items() if self._is_due(look, edge, key, hours)}

    def _is_due(self, look: Look, edge: Edge, key: str, hours: Collection[str]) -> bool:
        return key in look.published(edge.below.dataset) or all(hour in hours for hour in self.parts(key, edge.grain))


COMPLETE = Complete()


@dataclass(frozen=True, kw_only=True)
class Around(Same):
    """A partition reads the one with the same key, and neighbours with rows of so long `before` and `after` it.

    The reader begins with the first partition of the dataset `since`; without it, with the input's first.
    """

    grain: Grain
    before: timedelta = timedelta(0)
    after: timedelta = timedelta(0)
    since: str | None = None

    def required(self, look: Look, edge: Edge) -> Mapping[str, int]:
        above, versions = look.published(edge.above), due_versions(look, edge.above, self.delivered)
        keys = {*self._from_the_first(look, above, {}), *look.published(edge.below.dataset)}
        read = {key: [versions[part] for part in self.parts(key) if part in above] for key in keys}
        return {key: max(of) for key, of in read.items() if of}

    def reached(self, look: Look, edge: Edge, wanted: Wanted, asked: Wanted) -> Mapping[str, str]:
        keys = wanted.get(edge.above, {})
        published = look.published(edge.below.dataset)
        readers = Around(grain=self.grain, before=self.after, after=self.before)
        near = {reader: key for key in keys for reader in readers.parts(key) if reader in published}
        return near | {key: key for key in self._from_the_first(look, keys, wanted)}

    def parts(self, key: str) -> Sequence[str]:
        start = start_of(key, self.grain)
        last = start + self.grain.length + self.after - timedelta.resolution
        return between(key_of(start - self.before, self.grain), key_of(last, self.grain), self.grain)

    def _from_the_first(self, look: Look, keys: Mapping[str, object], wanted: Wanted) -> list[str]:
        if self.since is None:
            return list(keys)
        first = min([*look.published(self.since), *wanted.get(self.since, ())], default=None)
        return [] if first is None else [key for key in keys if key >= first]


@dataclass(frozen=True, kw_only=True)
class Span:
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
        keys = wanted.get(edge.above, {})
        span = self.span(look.published(edge.above), keys)
        read = () if span is None else sorted(keys.keys() & span.hours)
        return {WHOLE_TABLE: read[0]} if read else {}

    def span(self, published: Mapping[str, Entry], running: Iterable[str] = ()) -> Span | None:
        """Find the weeks that the table shows, and their hours; None if no week has ended."""
        filled = {hour for hour, entry in published.items() if entry.rows_kept} | (set(running) - published.keys())
        if not filled:
            return None
        newest = max(filled)
        open_week = coarser(newest, Grain.HOUR, Grain.WEEK)
        first = key_of(start_of(open_week, Grain.WEEK) - self.weeks * Grain.WEEK.length, Grain.WEEK)
        last = max((hour for hour in filled if first <= hour < open_week), default="")
        hours = frozenset(hour for hour in {*published, *filled} if first <= hour < open_week)
        return Span(first=first, last=coarser(last, Grain.HOUR, Grain.WEEK), open=newest, hours=hours) if last else None


@dataclass(frozen=True, kw_only=True)
class Shown(NotReplayed):
    """A partition repeats some values of a table that is written whole.

    Values are compared, not versions: a value that the partition does not show makes it not stale.
    """

    breakdown: str

    def behind(self, look: Look, edge: Edge) -> Mapping[str, str]:
        above = look.published(edge.above).get(WHOLE_TABLE)
        if above is None:
            return {}
        values = above.breakdowns.get(self.breakdown, {}).keys()
        outdated = {
            key: entry.breakdowns.get(self.breakdown, {}).keys() - values
            for key, entry in sorted(look.published(edge.below.dataset).items())
        }
        return {key: f"{edge.above} no longer says {sorted(map(str, of))}" for key, of in outdated.items() if of}


@dataclass(frozen=True, kw_only=True)
class Answers(NotReplayed):
    """A partition with rows that lack an answer is stale when the table of answers has more of them."""

    lacking: str

    def behind(self, look: Look, edge: Edge) -> Mapping[str, str]:
        history = look.history(edge.above)
        # A publication without a new answer makes nothing stale.
        new = [entry.version for before, entry in pairwise(history) if entry.rows_out > before.rows_out]
        newest = max([*new, *(entry.version for entry in history[:1])], default=-1)
        return {
            key: f"{edge.above} version {newest}"
            for key, entry in sorted(look.published(edge.below.dataset).items())
            if entry.inputs.get(edge.above, -1) < newest
            and (edge.above not in entry.inputs or int(entry.measures.get(self.lacking) or 0) > 0)
        }


TOGETHER = "pending of this commit"
"""What a partition has read whose previous partition was published by the same commit."""


@dataclass(frozen=True, kw_only=True)
class Carried(NotReplayed):
    """A partition continues from the rows that the one before has left pending (a dataset reads itself).

    What a partition has read is stored with its publication, in `landed`. If a partition runs again and leaves the same
    rows pending, the later ones are not stale. `measure` has a digest of the pending rows; 0 or null if there are none.
    """

    measure: str

    def behind(self, look: Look, edge: Edge) -> Mapping[str, str]:
        """Find the partitions that have read other pending rows, and missing ones that must close some.

        The partition after the newest one is not missing: its time has not come.
        """
        published, grain = look.published(edge.below.dataset), edge.grain
        newest = max(published, default="")
        before = {key: previous(key, grain) for key in published}
        earlier = {
            (entry.partition, entry.version): entry
            for entry in (look.history(edge.below.dataset) if self._any_moved(published, before) else ())
        }
        lacking = {}
        for key, entry in published.items():
            pending, read = self.left_by(published.get(before[key])), entry.landed or self.left_by(None)
            if read == TOGETHER:
                read = self.left_by(earlier.get((before[key], entry.version), published.get(before[key])))
            if read != pending:
                lacking[key] = pending
            after = following(key, grain)
            if entry.measures.get(self.measure) and after <= newest and after not in published:
                lacking[after] = self.left_by(entry)
        return lacking

    def left_by(self, entry: Entry | None) -> str:
        """Return the text of what a partition has left pending; None stands for a partition that is not published."""
        return f"pending {(entry.measures.get(self.measure) if entry else None) or 0}"

    def read(self, published: Mapping[str, Entry], keys: frozenset[str], grain: Grain) -> dict[str, str]:
        """Return, for each of the partitions that one commit publishes, what it has read of the one before."""
        before = {key: previous(key, grain) for key in keys}
        return {key: TOGETHER if before[key] in keys else self.left_by(published.get(before[key])) for key in keys}

    def _any_moved(self, published: Mapping[str, Entry], before: Mapping[str, str]) -> bool:
        return any(
            entry.landed == TOGETHER and before[key] in published and published[before[key]].version != entry.version
            for key, entry in published.items()
        )
