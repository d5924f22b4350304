"""What landed on a day as a full delivery, which says who is absent, and as changes, which do not."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from blogdata.lake.commit import Entry


def first_delivery(deliveries: Iterable[tuple[str, Entry]]) -> str | None:
    """Find the day of the first full delivery with a usable row."""
    return min((day for day, entry in deliveries if delivered_rows(entry)), default=None)


def delivered_on(delivery: Entry) -> str:
    """Return the day of a full delivery: the measure `load_date`, or the day in `landed` if it has no rows."""
    day = delivery.measures.get("load_date") or (delivery.landed or "").split(":")[0]
    return str(day)


def usable_rows(delivery: Entry) -> int:
    """Count the rows of a day that are not dead letters."""
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
