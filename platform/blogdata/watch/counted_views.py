"""The page views that the report counts, as columns of numbers in memory, and what is counted in a span of hours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from assets.referrers import ReferrerKind, kind_of
from blogdata.contract.partitions import Grain, key_of, start_of
from blogdata.table.lake import Lake
from quality.contracts.columns import DIRECT, UNKNOWN

DATASET = "silver.visits_enriched"
_HOST = "referral_host"
_COLUMNS = ("page", _HOST, "utm", "country", "browser", "device_type")
_ENCODED = ("visit_id", "user_id", *_COLUMNS)
_READ = ("event_hour", "event_time", *_ENCODED)
_COUNTS = {"views": "count_all", "visits": "visit_id_count_distinct", "visitors": "user_id_count_distinct"}
_COUNTED: tuple[tuple[str | list[str], str], ...] = (
    ([], "count_all"),
    ("visit_id", "count_distinct"),
    ("user_id", "count_distinct"),
)
_HOUR = 3600
DAY = 24
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class PageViews:
    """Page views ordered by hour; visits, visitors and dimensions are numbers that index their names."""

    rows: pa.Table
    """Columns `hour` (since 1970), `time` (microseconds since 1970), `visit_id`, `user_id` and the dimensions."""
    names: Mapping[str, Sequence[str]]
    """Dimension to the names of its numbers; visits and visitors have none here, so that none is shown."""
    own_hosts: frozenset[str]

    @classmethod
    def read(cls, lake: Lake, since: str | None, own_hosts: Collection[str] = ()) -> PageViews | None:
        """Read the published page views from an hour on; None if there are none. Without own hosts they are derived."""
        page_views = lake.columns(DATASET, _READ, since=since)
        if not page_views.num_rows:
            return None
        columns: dict[str, pa.Array] = {}
        names = {}
        hours = _encoded(page_views["event_hour"])
        starts = [int(start_of(key, Grain.HOUR).timestamp()) // _HOUR for key in hours.dictionary.to_pylist()]
        columns["hour"] = pa.array(np.array(starts, dtype=np.int64)[hours.indices.to_numpy(zero_copy_only=False)])
        columns["time"] = pc.cast(page_views["event_time"], pa.int64())
        for name in _ENCODED:
            encoded = _encoded(page_views[name])
            columns[name] = encoded.indices
            if name in _COLUMNS:
                columns[name], names[name] = _named(encoded.indices, encoded.dictionary.to_pylist())
        rows = pa.table(columns).sort_by("hour").combine_chunks()
        hosts = _configured(names[_HOST], own_hosts) if own_hosts else _own_hosts(rows, names[_HOST])
        kinds = [ReferrerKind.OWN if host in hosts else kind_of(host) for host in names[_HOST]]
        numbers, names["referral_kind"] = _named(rows[_HOST].combine_chunks(), kinds)
        return cls(rows=rows.append_column("referral_kind", numbers), names=names, own_hosts=hosts)

    @cached_property
    def hours(self) -> Numbers:
        hours: Numbers = self.rows["hour"].to_numpy()
        return hours

    @property
    def first(self) -> int:
        return int(self.hours[0])

    @property
    def last(self) -> int:
        return int(self.hours[-1])

    def within(self, first: int, last: int) -> pa.Table:
        begins, ends = np.searchsorted(self.hours, [first, last + 1])
        return self.rows.slice(int(begins), int(ends - begins))

    def counted(self, first: int, last: int) -> Mapping[str, float | None]:
        """Compute the figures of a span of hours; None where one is not defined.

        A bounce is a visit with exactly one page view in the span; `seconds` is the median time from the first to the
        last page view of the others.
        """
        rows = self.within(first, last)
        visits = rows.group_by("visit_id").aggregate([([], "count_all"), ("time", "min"), ("time", "max")])
        views = visits["count_all"].to_numpy()
        lengths = (visits["time_max"].to_numpy() - visits["time_min"].to_numpy())[views > 1] / 1_000_000
        return {
            "views": rows.num_rows,
            "visits": visits.num_rows,
            "visitors": len(np.unique(rows["user_id"].to_numpy())),
            "views_per_visit": rows.num_rows / visits.num_rows if visits.num_rows else None,
            "bounce": int((views == 1).sum()) / visits.num_rows if visits.num_rows else None,
            "seconds": float(np.median(lengths)) if len(lengths) else None,
        }

    def series(self, first: int, last: int, length: int) -> Mapping[str, Sequence[int]]:
        """Count `views`, `visits` and `visitors` of each slot of so many hours, zeros included."""
        rows = self.within(first, last)
        slots = (rows["hour"].to_numpy() - first) // length
        groups = rows.append_column("slot", pa.array(slots)).group_by("slot").aggregate(list(_COUNTED))
        counted = {}
        for name, column in _COUNTS.items():
            numbers = np.zeros((last - first) // length + 1, dtype=np.int64)
            numbers[groups["slot"].to_numpy()] = groups[column].to_numpy()
            counted[name] = numbers.tolist()
        return counted

    def by(self, dimension: str, first: int, last: int) -> Iterator[tuple[str, Sequence[int]]]:
        """Count page views, distinct visits and distinct visitors by the names of a dimension."""
        groups = self.within(first, last).group_by(dimension).aggregate(list(_COUNTED))
        counts = zip(*(groups[column].to_pylist() for column in _COUNTS.values()), strict=True)
        names = self.names[dimension]
        return ((names[code], numbers) for code, numbers in zip(groups[dimension].to_pylist(), counts, strict=True))


def _configured(hosts: Sequence[str], names: Collection[str]) -> frozenset[str]:
    known = {host.removeprefix("www.") for host in names}
    return frozenset(host for host in hosts if host.removeprefix("www.") in known)


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
            if name not in (DIRECT, UNKNOWN):
                counter[name.removeprefix("www.")] += views
    host, views = max(later.items(), key=lambda item: item[1], default=("", 0))
    share = views / max(later.total(), 1)
    if share <= 0.5 or share * first.total() <= first[host]:
        return frozenset()
    return _configured(hosts, [host])


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
