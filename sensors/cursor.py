"""What a readiness sensor has seen, small enough to be kept with every tick.

Dagster stores the whole cursor at each tick, and a year has 8,760 hours. The newest day is remembered hour by hour;
a day before it by one digest of all its hours, so that anything that comes late still shows.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from patterns.ingestion.readiness_marker import LandedPartition

_DAY = "day "


@dataclass(frozen=True, kw_only=True)
class Seen:
    """Partitions and their content, as of the last tick; ``entries`` is a partition, or a whole day, to a digest."""

    entries: Mapping[str, str]

    @classmethod
    def read(cls, cursor: str | None) -> Seen:
        """Read a cursor; None before the first tick."""
        return cls(entries=json.loads(cursor) if cursor else {})

    def knows(self, key: str) -> bool:
        """Tell whether a partition has been seen, with whatever content."""
        return key in self.entries or _day(key) in self.entries

    def changed(self, ready: Sequence[LandedPartition]) -> list[LandedPartition]:
        """Give the partitions that are new or have other content; all of a day that is remembered as a whole."""
        settled = {day for day, hours in _by_day(ready).items() if self.entries.get(day) == _digest(hours)}
        return [
            partition
            for partition in ready
            if _day(partition.key) not in settled and self.entries.get(partition.key) != partition.fingerprint
        ]

    def cursor(self, fresh: Iterable[LandedPartition], ready: Sequence[LandedPartition]) -> str:
        """Write the cursor.

        Args:
            fresh: What this tick has dealt with.
            ready: All that is there.
        """
        entries = {**self.entries, **{partition.key: partition.fingerprint for partition in fresh}}
        days = _by_day(ready)
        for day in sorted(days)[:-1]:
            hours, digest = days[day], _digest(days[day])
            if entries.get(day) == digest or all(entries.get(hour.key) == hour.fingerprint for hour in hours):
                entries[day] = digest
                for hour in hours:
                    entries.pop(hour.key, None)
        return json.dumps(entries, sort_keys=True)


def _day(key: str) -> str:
    return _DAY + key[:10]


def _by_day(ready: Iterable[LandedPartition]) -> dict[str, list[LandedPartition]]:
    days: dict[str, list[LandedPartition]] = defaultdict(list)
    for partition in ready:
        days[_day(partition.key)].append(partition)
    return days


def _digest(hours: Sequence[LandedPartition]) -> str:
    content = sorted((hour.key, hour.fingerprint) for hour in hours)
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]
