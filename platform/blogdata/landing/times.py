"""Times as producers write them."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

EARLIEST = datetime(2000, 1, 1, tzinfo=timezone.utc)
"""The first time that an event may have."""
# What the standard library parses in each version of Python.
_USUAL = re.compile(
    r"\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3]):\d\d:\d\d(?:\.\d{3}(?:\d{3})?)?[+-](?:0\d|1[0-7]):[0-5]\d", re.ASCII
)
_ISO = re.compile(
    r"(\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3]):\d\d)(?:(:\d\d)(?:[.,](\d+))?)?(?:Z|([+-])(\d\d)(?::?([0-5]\d))?)", re.ASCII
)
_WIDEST = timedelta(hours=18)


def iso_time(text: str) -> datetime | None:
    """Parse an ISO 8601 date-time with an offset or Z as a time in UTC; None for anything else.

    Seconds are optional; a fraction follows `.` or `,` and is cut to microseconds; `T` and `Z` are in upper case;
    offsets reach 18 hours; there is no 24:00 and no leap second. A time whose year in UTC is not 1 to 9999 is none.
    """
    # With these separators, the standard library takes nothing but digits between them.
    is_usual = text[4:20:3] == "--T::." and text[-1] == "Z" and text[11:13] < "24"
    if is_usual and text[20:-1].isdigit() and text.isascii():
        try:
            return datetime.fromisoformat(f"{text[:-1]}+00:00")
        except ValueError:
            # Python 3.10 takes fractions of three or six digits only.
            return _unusual_time(text)
    return _unusual_time(text)


def _unusual_time(text: str) -> datetime | None:
    try:
        if _USUAL.fullmatch(text):
            return datetime.fromisoformat(text).astimezone(timezone.utc)
        found = _ISO.fullmatch(text)
        if found is None:
            return None
        minute, second, fraction, sign, hours, minutes = found.groups()
        fraction = (fraction or "")[:6].ljust(6, "0")
        time = datetime.fromisoformat(f"{minute}{second or ':00'}.{fraction}+00:00")
        if sign is None:
            return time
        offset = timedelta(hours=int(hours), minutes=int(minutes or 0))
        if offset > _WIDEST:
            return None
        return time - offset if sign == "+" else time + offset
    except (ValueError, OverflowError):
        return None
