"""The faults of real feeds, and the rate of each."""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields
from pathlib import Path

from blogdata.errors import ConfigurationError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HUGE_LINES_PER_HOUR = 2
"""A huge line has five million bytes, so their number is capped: a high rate would fill the disk."""
HOUR_FAULTS = ("empty_hour", "missing_hour")


@dataclass(frozen=True, kw_only=True)
class FaultRates:
    """Share of events (of hours for the last two) that carry each fault, between 0 and 1.

    A line carries at most one fault, so the rates of the line faults add up to at most 1. The defaults are those
    of a healthy feed. Lines due in an empty or missing hour arrive in the next landed hour; the last hour of the
    span always lands.
    """

    duplicate: float = 0.005
    """The same bytes again, later, possibly in a later hour."""
    conflict: float = 0.0005
    """The same event identity again, later, with another payload."""
    null_field: float = 0.001
    """One field, required or optional, is null."""
    missing_field: float = 0.0005
    """One field, required or optional, is absent."""
    not_json: float = 0.0005
    """The line is no JSON object."""
    truncated: float = 0.0003
    """The line is cut off in the middle."""
    wrong_type: float = 0.0003
    """A field has an unusable type, for example a number as `visit_id`."""
    number_as_string: float = 0.0005
    """A boolean in quotes, or a number or boolean where a string is expected."""
    future_time: float = 0.0001
    """The event time is 1 to 79 years ahead, as from a wrong browser clock."""
    epoch_time: float = 0.0001
    """The event time is on 1970-01-01, as from a reset browser clock."""
    several_objects: float = 0.0001
    """Two JSON objects in one line."""
    empty_line: float = 0.0002
    """The line is empty or white space."""
    not_utf8: float = 0.0001
    """The line contains bytes that are not UTF-8."""
    huge_line: float = 0.000005
    """A line of 5 MB; at most two per hour, whatever the rate."""
    unknown_field: float = 0.001
    """Fields that are not in the schema."""
    late: float = 0.01
    """Arrives 1 to 48 hours late; on time if that would be after the span."""
    naive_time: float = 0.0002
    """The event time has no zone."""
    invalid_connected_since: float = 0.0001
    """`connected_since` is no date-time."""
    minutes_late: float = 0.0
    """Arrives 1 to 60 minutes late; on time if that would be after the span."""
    empty_hour: float = 0.0
    """The hour lands with the flag and without lines."""
    missing_hour: float = 0.0
    """The hour has no folder."""

    def __post_init__(self) -> None:
        for one in fields(self):
            rate = getattr(self, one.name)
            if isinstance(rate, bool) or not isinstance(rate, (int, float)) or not 0 <= rate <= 1:
                raise ConfigurationError(
                    what=f"the rate {rate!r} is not a number between 0 and 1",
                    where=f"fault rates, {one.name}",
                    next_step="give the share of events that carry the fault, for example 0.01 for 1 %",
                )
        total = sum(getattr(self, name) for name in LINE_FAULTS)
        if total > 1 + 1e-9:
            raise ConfigurationError(
                what=f"the rates of the lines' faults add up to {total:g}, more than 1",
                where="fault rates",
                next_step="lower some of them: a line carries at most one fault",
            )

    @classmethod
    def none(cls, **rates: float) -> FaultRates:
        return cls(**{**dict.fromkeys((one.name for one in fields(cls)), 0.0), **rates})


LINE_FAULTS: tuple[str, ...] = tuple(one.name for one in fields(FaultRates) if one.name not in HOUR_FAULTS)


def load_faults(path: Path) -> FaultRates:
    try:
        rates = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            what=f"the faults file cannot be read: {error}",
            where=str(path),
            next_step="write lines such as `late = 0.05` (TOML)",
        ) from error
    unknown = sorted(set(rates) - {one.name for one in fields(FaultRates)})
    if unknown:
        raise ConfigurationError(
            what=f"unknown faults: {', '.join(unknown)}",
            where=str(path),
            next_step=f"use these names only: {', '.join((*LINE_FAULTS, *HOUR_FAULTS))}",
        )
    return FaultRates.none(**rates)
