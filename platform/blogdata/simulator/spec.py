"""Parameters of a simulation: the span, the volume, the seed and the fault rates."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import date, datetime, timedelta, timezone
from typing import Any

from blogdata.simulator.feed_faults import FaultRates
from blogdata.simulator.text import HOUR_MS

FORMAT = 1
"""Version of the simulator, increased whenever the same spec would produce other bytes."""
MAX_PART_LINES = 50_000
_ENDLESS_MS = 1 << 62


@dataclass(frozen=True, kw_only=True)
class SimulationSpec:
    """A simulated outside world; the same spec always produces the same bytes, with and without ads.

    Hours may be added behind the days. Nothing crosses the end of the days: however many hours are added, the bytes of
    each are the same.
    """

    days: int
    visits_per_day: int
    seed: int
    start: date = date(2026, 1, 5)
    faults: FaultRates = field(default_factory=FaultRates)
    part_lines: int = MAX_PART_LINES
    ads: bool = False
    added_hours: int = 0

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> SimulationSpec:
        given = {name: value for name, value in stored.items() if name != "format"}
        start, faults = date.fromisoformat(given.pop("start")), FaultRates.none(**given.pop("faults"))
        return cls(start=start, faults=faults, **given)

    @property
    def first_added(self) -> int:
        """The hour of the span that follows its days."""
        return 24 * self.days

    @property
    def hours(self) -> int:
        return self.first_added + self.added_hours

    def begin_ms(self, hour: int) -> int:
        """Returns the moment before which nothing of an hour's sessions happens, in milliseconds since 1970."""
        return self.start_ms + (self.first_added * HOUR_MS if hour >= self.first_added else 0)

    def end_ms(self, hour: int) -> int:
        """Returns the moment by which everything of an hour's sessions has happened and arrived."""
        return _ENDLESS_MS if hour >= self.first_added else self.begin_ms(self.first_added)

    @property
    def start_ms(self) -> int:
        moment = datetime(self.start.year, self.start.month, self.start.day, tzinfo=timezone.utc)
        return int(moment.timestamp()) * 1000

    def hour_key(self, hour: int) -> str:
        return f"{self.day_key(hour // 24)}T{hour % 24:02d}"

    def day_key(self, day: int) -> str:
        return (self.start + timedelta(days=day)).isoformat()

    def as_json(self) -> dict[str, Any]:
        return {"format": FORMAT, **asdict(self), "start": self.start.isoformat()}

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(json.dumps(self.as_json(), sort_keys=True).encode()).hexdigest()[:16]
