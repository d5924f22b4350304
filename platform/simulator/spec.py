"""What to simulate: the span, the volume, the seed and how often each fault occurs."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, fields
from datetime import date, datetime, timedelta, timezone
from typing import Any

from errors import ConfigurationError
from simulator.faults import FaultRates

FORMAT = 1
"""Raised whenever the same spec would give other bytes."""
MAX_PART_LINES = 50_000


@dataclass(frozen=True, kw_only=True)
class SimulationSpec:
    """A simulated outside world; the same spec always gives the same bytes.

    Args:
        days: Length of the span, whole UTC days, at least 1.
        visits_per_day: Visit events a day on average over the span, before faults add or break lines.
        seed: Seed of every random choice, 0 or more.
        start: First day of the span.
        faults: How often each fault occurs.
        gzip: Whether the landed visit files are compressed.
        part_lines: Most lines of one landed file.

    Raises:
        ConfigurationError: A value is outside its range.
    """

    days: int
    visits_per_day: int
    seed: int
    start: date = date(2026, 1, 5)
    faults: FaultRates = field(default_factory=FaultRates)
    gzip: bool = False
    part_lines: int = MAX_PART_LINES

    def __post_init__(self) -> None:
        for name, least in (("days", 1), ("visits_per_day", 0), ("seed", 0), ("part_lines", 1)):
            value = getattr(self, name)
            if value < least:
                raise ConfigurationError(
                    what=f"{name} is {value}, which is less than {least}",
                    where=f"simulation, {name}",
                    next_step=f"give {name} a whole number of {least} or more",
                )
        if not date(2000, 1, 1) <= self.start <= date(9000, 1, 1):
            raise ConfigurationError(
                what=f"the first day {self.start} is outside the years 2000 to 9000",
                where="simulation, start",
                next_step="choose a first day that an event may carry",
            )

    @property
    def hours(self) -> int:
        """Hours of the span."""
        return 24 * self.days

    @property
    def start_ms(self) -> int:
        """Milliseconds since 1970 of the beginning of the span."""
        moment = datetime(self.start.year, self.start.month, self.start.day, tzinfo=timezone.utc)
        return int(moment.timestamp()) * 1000

    def hour_key(self, hour: int) -> str:
        """Partition key of an hour of the span, 0 being its first."""
        return f"{self.day_key(hour // 24)}T{hour % 24:02d}"

    def day_key(self, day: int) -> str:
        """Partition key of a day of the span, 0 being its first."""
        return (self.start + timedelta(days=day)).isoformat()

    def as_json(self) -> dict[str, Any]:
        """Every choice that decides the bytes, ready to be stored beside them."""
        return {
            "format": FORMAT,
            "days": self.days,
            "visits_per_day": self.visits_per_day,
            "seed": self.seed,
            "start": self.start.isoformat(),
            "gzip": self.gzip,
            "part_lines": self.part_lines,
            "faults": {one.name: getattr(self.faults, one.name) for one in fields(self.faults)},
        }

    @property
    def fingerprint(self) -> str:
        """A short name of this very spec."""
        return hashlib.sha256(json.dumps(self.as_json(), sort_keys=True).encode()).hexdigest()[:16]
