"""Where a table that is derived from full deliveries in their order can be continued, instead of derived anew."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from blogdata.lake.commit import Entry
from blogdata.planning.full_deliveries import usable_rows


@dataclass(frozen=True, kw_only=True)
class Continued:
    """A version of a table to continue from.

    Args:
        left: Days of the deliveries that it lacks, in order; all of them are later.
    """

    version: int
    last: str
    left: tuple[str, ...]


def continued(own: Iterable[Entry], loads: Iterable[Entry], now: Mapping[str, int]) -> Iterator[Continued]:
    """Find the versions of a table whose deliveries are all unchanged and before those they lack, the newest first."""
    source, versions = "", dict[str, list[int]]()
    usable: set[tuple[str, int]] = set()
    for load in sorted(loads, key=lambda load: load.version):
        source = load.dataset
        versions.setdefault(load.partition, []).append(load.version)
        if usable_rows(load):
            usable.add((load.partition, load.version))
    for entry in sorted(own, key=lambda entry: entry.version, reverse=True):
        read = entry.inputs.get(source, -1)
        newest = {day: made[at - 1] for day, made in versions.items() if (at := bisect_right(made, read))}
        there = {(day, version) for day, version in newest.items() if (day, version) in usable}
        last = max((day for day, _ in there), default="")
        left = {day for day in now if day not in dict(there)}
        if there and there <= set(now.items()) and all(day > last for day in left):
            yield Continued(version=entry.version, last=last, left=tuple(sorted(left)))
