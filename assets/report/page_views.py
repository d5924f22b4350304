"""The page views that the report counts, as columns of numbers in memory, and what is counted in a span of hours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from assets.report.referrers import ReferrerKind, Referrers
from assets.report.systems import system_of
from blogdata.lake.lake import Lake
from blogdata.publish.partitions import Grain, key_of, start_of
from quality.contracts.columns import DIRECT, UNKNOWN

DATASET = "silver.visits_enriched"
_HOST = "referral_host"
_COLUMNS = ("page", _HOST, "utm", "country", "browser", "device_type")
DIMENSIONS = (*_COLUMNS, "referral_kind", "system")
_ENCODED = ("visit_id", "user_id", *_COLUMNS)
_READ = ("event_hour", "event_time", "keep_private", *_ENCODED)
_HOUR = 3600
DAY = 24
"""Hours of a day."""
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Counted:
    """What a span of hours has.

    Args:
        views: Page views.
        visits: Distinct visits with a page view in the span.
        visitors: Distinct visitors with a page view in the span.
        new: Those of them without a page view before the span.
        bounced: Visits with exactly one page view in the span.
        seconds: Median seconds from the first to the last page view of the visits with several; None without such.
        private_views: Page views of visitors who asked not to be shared.
    """

    views: int
    visits: int
    visitors: int
    new: int
    bounced: int
    seconds: float | None
    private_views: int


@dataclass(frozen=True, kw_only=True)
class PageViews:
    """Page views ordered by hour; visits, visitors and dimensions are numbers that index their names.

    Args:
        rows: Columns `hour` (since 1970), `time` (microseconds since 1970), `private`, `visit_id`, `user_id` and the
            dimensions.
        names: Dimension to the names of its numbers; visits and visitors have none here, so that none is shown.
        own_hosts: The blog's own hosts among those that visitors came from.
    """

    rows: pa.Table
    names: Mapping[str, Sequence[str]]
    own_hosts: frozenset[str]

    @classmethod
    def read(cls, lake: Lake, since: str | None, referrers: Referrers) -> PageViews | None:
        """Read the published page views.

        Args:
            lake: The tables' root.
            since: First hour to read, as a partition key; None: all.
            referrers: What is known of the sites that readers came from.

        Returns:
            The page views; None if there are none.
        """
        found = lake.columns(DATASET, _READ, since=since)
        if not found.num_rows:
            return None
        columns: dict[str, pa.Array] = {}
        names = {}
        hours = _encoded(found["event_hour"])
        starts = [int(start_of(key, Grain.HOUR).timestamp()) // _HOUR for key in hours.dictionary.to_pylist()]
        columns["hour"] = pa.array(np.array(starts, dtype=np.int64)[hours.indices.to_numpy(zero_copy_only=False)])
        columns["time"] = pc.cast(found["event_time"], pa.int64())
        columns["private"] = found["keep_private"]
        for name in _ENCODED:
            encoded = _encoded(found[name])
            columns[name] = encoded.indices
            if name in _COLUMNS:
                columns[name], names[name] = _named(encoded.indices, encoded.dictionary.to_pylist())
        spam = [
            host if referrers.kind_of(host) is not ReferrerKind.SPAM else ReferrerKind.SPAM.value
            for host in names[_HOST]
        ]
        columns[_HOST], names[_HOST] = _named(columns[_HOST], spam)
        rows = pa.table(columns).sort_by("hour").combine_chunks()
        own = _configured(names[_HOST], referrers.own) if referrers.own else _own_hosts(rows, names[_HOST])
        systems = [system_of(device) for device in names["device_type"]]
        kinds = [ReferrerKind.OWN if host in own else referrers.kind_of(host) for host in names[_HOST]]
        for name, of, values in (("system", "device_type", systems), ("referral_kind", _HOST, kinds)):
            numbers, names[name] = _named(rows[of].combine_chunks(), values)
            rows = rows.append_column(name, numbers)
        return cls(rows=rows, names=names, own_hosts=own)

    @cached_property
    def hours(self) -> Numbers:
        """The hour of each row, in order."""
        found: Numbers = self.rows["hour"].to_numpy()
        return found

    @cached_property
    def knows_who_is_private(self) -> bool:
        """Whether some visitors asked not to be shared and others did not: in an access log nobody was asked."""
        private = int(pc.sum(self.rows["private"]).as_py() or 0)
        return bool(0 < private < self.rows.num_rows)

    @property
    def first(self) -> int:
        """The first hour with a page view."""
        return int(self.hours[0])

    @property
    def last(self) -> int:
        """The last hour with a page view."""
        return int(self.hours[-1])

    @cached_property
    def _first_hours(self) -> Numbers:
        """The first hour of each visitor, by the visitor's number."""
        found = self.rows.group_by("user_id").aggregate([("hour", "min")])
        first = np.zeros(found.num_rows, dtype=np.int64)
        first[found["user_id"].to_numpy()] = found["hour_min"].to_numpy()
        return first

    def within(self, first: int, last: int) -> pa.Table:
        """Return the rows of a span, both hours included."""
        begins, ends = np.searchsorted(self.hours, [first, last + 1])
        return self.rows.slice(int(begins), int(ends - begins))

    def counted(self, first: int, last: int) -> Counted:
        """Count a span, both hours included."""
        rows = self.within(first, last)
        visits = rows.group_by("visit_id").aggregate([([], "count_all"), ("time", "min"), ("time", "max")])
        views = visits["count_all"].to_numpy()
        lengths = (visits["time_max"].to_numpy() - visits["time_min"].to_numpy())[views > 1] / 1_000_000
        visitors = np.unique(rows["user_id"].to_numpy())
        return Counted(
            views=rows.num_rows,
            visits=visits.num_rows,
            visitors=len(visitors),
            new=int((self._first_hours[visitors] >= first).sum()),
            bounced=int((views == 1).sum()),
            seconds=float(np.median(lengths)) if len(lengths) else None,
            private_views=int(pc.sum(rows["private"]).as_py() or 0),
        )

    def series(self, first: int, last: int, starts: Numbers) -> Mapping[str, Sequence[int]]:
        """Count page views, visits, visitors and new visitors of each slot of a span, such as a day or a month.

        Args:
            first: First hour.
            last: Last hour, included.
            starts: First hour of each slot, in order.

        Returns:
            `views`, `visits`, `visitors` and `new`, each with one number a slot, zeros included.
        """
        rows = self.within(first, last)

        def slot(hours: Numbers) -> Numbers:
            return np.searchsorted(starts, hours, side="right") - 1

        by_slot = rows.append_column("slot", pa.array(slot(rows["hour"].to_numpy())))
        groups = by_slot.group_by("slot").aggregate(
            [([], "count_all"), ("visit_id", "count_distinct"), ("user_id", "count_distinct")]
        )
        at = groups["slot"].to_numpy()
        counted = {}
        for name, column in (
            ("views", "count_all"),
            ("visits", "visit_id_count_distinct"),
            ("visitors", "user_id_count_distinct"),
        ):
            numbers = np.zeros(len(starts), dtype=np.int64)
            numbers[at] = groups[column].to_numpy()
            counted[name] = numbers.tolist()
        new = self._first_hours[(self._first_hours >= first) & (self._first_hours <= last)]
        counted["new"] = np.bincount(slot(new), minlength=len(starts)).tolist()
        return counted

    def by_weekday(self, first: int, last: int) -> Sequence[Sequence[float | None]]:
        """Return the mean page views of each hour of the week, Monday first; None where the span has no such hour."""
        hours = np.arange(first, last + 1)
        views = np.bincount(self.within(first, last)["hour"].to_numpy() - first, minlength=len(hours))
        # 1970-01-01 was a Thursday, the fourth day of its week.
        slots = (hours + 3 * 24) % 168
        total, count = np.bincount(slots, weights=views, minlength=168), np.bincount(slots, minlength=168)
        means = [float(round(all_ / n, 2)) if n else None for all_, n in zip(total, count, strict=True)]
        return [means[day * 24 : day * 24 + 24] for day in range(7)]

    def views_by(self, dimension: str, first: int, last: int) -> Mapping[str, int]:
        """Count the page views of a span by a dimension; names without any are left out."""
        counts = np.bincount(self.within(first, last)[dimension].to_numpy())
        names = self.names[dimension]
        return {names[code]: int(counts[code]) for code in np.flatnonzero(counts).tolist()}

    def by(self, dimension: str, first: int, last: int) -> Sequence[tuple[str, int, int, int]]:
        """Count by a dimension.

        Returns:
            Name, page views, distinct visits and distinct visitors; most page views first, then by name.
        """
        groups = (
            self.within(first, last)
            .group_by(dimension)
            .aggregate([([], "count_all"), ("visit_id", "count_distinct"), ("user_id", "count_distinct")])
        )
        names = self.names[dimension]
        columns = ("count_all", "visit_id_count_distinct", "user_id_count_distinct")
        numbers = zip(groups[dimension].to_pylist(), *(groups[name].to_pylist() for name in columns), strict=True)
        found = [(names[code], views, visits, visitors) for code, views, visits, visitors in numbers]
        return sorted(found, key=lambda row: (-row[1], row[0]))


def _configured(hosts: Sequence[str], own: frozenset[str]) -> frozenset[str]:
    return frozenset(host for host in hosts if host.removeprefix("www.") in own)


def _own_hosts(rows: pa.Table, hosts: Sequence[str]) -> frozenset[str]:
    """Find the blog's own hosts by what they do.

    Visitors come to the first page of a visit from anywhere, and to the later ones from the page before. The own
    host is the one, with or without `www.`, that most of the later page views with a referrer come from, and a
    larger share of them than of the first ones.
    """
    begins = rows.group_by("visit_id").aggregate([("time", "min")])
    times = np.zeros(begins.num_rows, dtype=np.int64)
    times[begins["visit_id"].to_numpy()] = begins["time_min"].to_numpy()
    is_first = rows["time"].to_numpy() == times[rows["visit_id"].to_numpy()]
    of_row = rows[_HOST].to_numpy()
    first, later = Counter[str](), Counter[str]()
    for counter, chosen in ((first, is_first), (later, ~is_first)):
        for name, views in zip(hosts, np.bincount(of_row[chosen]).tolist(), strict=False):
            if name not in (DIRECT, UNKNOWN, ReferrerKind.SPAM.value):
                counter[name.removeprefix("www.")] += views
    own, views = max(later.items(), key=lambda host: host[1], default=("", 0))
    share = views / max(later.total(), 1)
    if share <= 0.5 or share * first.total() <= first[own]:
        return frozenset()
    return _configured(hosts, frozenset({own}))


def key_of_hour(hour: int) -> str:
    """Return the partition key of an hour since 1970."""
    return key_of(start_of("1970-01-01T00", Grain.HOUR) + Grain.HOUR.length * hour, Grain.HOUR)


def _encoded(values: pa.ChunkedArray) -> pa.DictionaryArray:
    # Combined first: to unify the dictionaries of thousands of chunks takes minutes.
    return pc.cast(values, pa.large_string()).combine_chunks().dictionary_encode(null_encoding="encode")


def _named(indices: pa.Array, values: Sequence[str | None]) -> tuple[pa.Array, Sequence[str]]:
    """Give equal values one number; those that are null or empty are named unknown."""
    known = [value or UNKNOWN for value in values]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(known))}
    renumbered = np.array([numbers[value] for value in known], dtype=np.int32)
    return pa.array(renumbered[indices.to_numpy(zero_copy_only=False)]), list(numbers)
