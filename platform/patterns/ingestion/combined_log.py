"""Reads the hour of an access log line, of any format that has the time in brackets, from the bytes of the line alone.

Only the beginning of a line is parsed, up to the time stamp: a request or user agent that is truncated or full of
invalid bytes does not affect the time. The formats are those of :mod:`.log_formats`.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from functools import lru_cache

from patterns.ingestion.log_formats import SYSLOG, in_python

_QUOTED_USER = rb'"(?:[^"\\\n]|\\.)*" '
_STAMP = re.compile(
    in_python(SYSLOG).encode()
    + rb"\S+ \S+ (?:%s|[^\[\n]*)" % _QUOTED_USER
    + rb"\[(\d\d/[A-Z][a-z]{2}/\d{4}:\d\d):([0-5]\d):[0-5]\d ([+-]\d\d)([0-5]\d)\]"
)
_MONTHS = dict(zip(b"Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(), range(1, 13), strict=True))


def hour_of_combined(line: bytes) -> str | None:
    """Read the UTC hour in which a line was logged.

    Args:
        line: A line of the log, or its beginning.

    Returns:
        The hour as `2026-01-31T05`, or None if the line has no readable time.
    """
    found = _STAMP.match(line)
    if found is None:
        return None
    stamp, minute, zone_hours, zone_minutes = found.groups()
    whole_hours = zone_minutes == b"00"
    return _hour(stamp, b"00" if whole_hours else minute, zone_hours, zone_minutes)


@lru_cache(maxsize=4096)
def _hour(stamp: bytes, minute: bytes, zone_hours: bytes, zone_minutes: bytes) -> str | None:
    """Compute the UTC hour of a stamp such as `17/May/2015:10`; cached, as many lines share an hour."""
    offset = timedelta(hours=int(zone_hours), minutes=int(zone_hours[:1] + zone_minutes))
    try:
        month = _MONTHS[stamp[3:6]]
        local = datetime(int(stamp[7:11]), month, int(stamp[:2]), int(stamp[12:14]), int(minute), tzinfo=timezone.utc)
        return (local - offset).strftime("%Y-%m-%dT%H") if local.year >= 1000 else None
    except (KeyError, ValueError, OverflowError):
        return None
