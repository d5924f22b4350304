"""Parameters of a simulation: the span, the volume, the seed and the fault rates."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass as validated

from blogdata.errors import ConfigurationError
from blogdata.simulator.text import HOUR_MS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FORMAT = 1
"""Version of the simulator, increased whenever the same spec would produce other bytes."""
MAX_PART_LINES = 50_000
_ENDLESS_MS = 1 << 62
HUGE_LINES_PER_HOUR = 2
"""A huge line has five million bytes, so their number is capped: a high rate would fill the disk."""
HOUR_FAULTS = ("empty_hour", "missing_hour")
Rate = Annotated[float, Field(ge=0, le=1, strict=True, allow_inf_nan=False)]


@validated(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class FaultRates:
    """Share of events (of hours for the last two) that carry each fault, between 0 and 1.

    A line carries at most one fault, so the rates of the line faults add up to at most 1. The defaults are those
    of a healthy feed. Lines due in an empty or missing hour arrive in the next landed hour; the last hour of the
    span always lands.
    """

    duplicate: Rate = 0.005
    """The same bytes again, later, possibly in a later hour."""
    conflict: Rate = 0.0005
    """The same event identity again, later, with another payload."""
    null_field: Rate = 0.001
    """One field, required or optional, is null."""
    missing_field: Rate = 0.0005
    """One field, required or optional, is absent."""
    not_json: Rate = 0.0005
    """The line is no JSON object."""
    truncated: Rate = 0.0003
    """The line is cut off in the middle."""
    wrong_type: Rate = 0.0003
    """A field has an unusable type, for example a number as `visit_id`."""
    number_as_string: Rate = 0.0005
    """A boolean in quotes, or a number or boolean where a string is expected."""
    future_time: Rate = 0.0001
    """The event time is 1 to 79 years ahead, as from a wrong browser clock."""
    epoch_time: Rate = 0.0001
    """The event time is on 1970-01-01, as from a reset browser clock."""
    several_objects: Rate = 0.0001
    """Two JSON objects in one line."""
    empty_line: Rate = 0.0002
    """The line is empty or white space."""
    not_utf8: Rate = 0.0001
    """The line contains bytes that are not UTF-8."""
    huge_line: Rate = 0.000005
    """A line of 5 MB; at most two per hour, whatever the rate."""
    unknown_field: Rate = 0.001
    """Fields that are not in the schema."""
    late: Rate = 0.01
    """Arrives 1 to 48 hours late; on time if that would be after the span."""
    naive_time: Rate = 0.0002
    """The event time has no zone."""
    invalid_connected_since: Rate = 0.0001
    """`connected_since` is no date-time."""
    minutes_late: Rate = 0.0
    """Arrives 1 to 60 minutes late; on time if that would be after the span."""
    empty_hour: Rate = 0.0
    """The hour lands with the flag and without lines."""
    missing_hour: Rate = 0.0
    """The hour has no folder."""

    def __post_init__(self) -> None:
        if (total := sum(getattr(self, name) for name in LINE_FAULTS)) > 1 + 1e-9:
            raise ValueError(f"the rates of the lines' faults add up to {total:g}, more than 1")

    @classmethod
    def none(cls, **rates: float) -> FaultRates:
        return cls(**{**dict.fromkeys(_NAMES, 0.0), **rates})


_NAMES = tuple(field.name for field in fields(FaultRates))
LINE_FAULTS = tuple(name for name in _NAMES if name not in HOUR_FAULTS)


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


def load_faults(path: Path) -> FaultRates:
    try:
        return FaultRates.none(**tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        wrong = error.errors(include_url=False) if isinstance(error, ValidationError) else ()
        why = "; ".join(": ".join(map(str, (*entry["loc"], entry["msg"]))) for entry in wrong) or str(error)
        raise ConfigurationError(
            what=f"the faults file cannot be read: {why}",
            where=str(path),
            next_step=f"write lines such as `late = 0.05` (TOML), with rates from 0 to 1 of {', '.join(_NAMES)}",
        ) from error
