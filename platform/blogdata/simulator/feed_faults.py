"""The faults of real feeds, and the rate of each."""

from __future__ import annotations

import sys
from dataclasses import fields
from pathlib import Path
from typing import Annotated

from pydantic import ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass

from blogdata.errors import ConfigurationError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HUGE_LINES_PER_HOUR = 2
"""A huge line has five million bytes, so their number is capped: a high rate would fill the disk."""
HOUR_FAULTS = ("empty_hour", "missing_hour")
Rate = Annotated[float, Field(ge=0, le=1, strict=True, allow_inf_nan=False)]


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
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
