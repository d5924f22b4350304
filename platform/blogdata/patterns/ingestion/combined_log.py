"""Reads the hour of an access log line from the bytes of the line alone.

Where the time is in brackets, as in most formats, only the beginning of a line is parsed, up to the time stamp: a
request or user agent that is truncated or full of invalid bytes does not affect the time. Any other line is read by
its format (:mod:`.log_formats`).
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from functools import lru_cache

from blogdata.patterns.ingestion.log_declarations import PREFIX, in_python
from blogdata.patterns.ingestion.log_formats import LogFormats, formats

_MARK = b"\xef\xbb\xbf"
_QUOTED_USER = rb'"(?:[^"\\\n]|\\.)*" '
# Brackets are of the visitor in lines that have their time as JSON, in columns, or by ISO 8601.
_OTHERWISE = rb"\{|(?:[^\s.]+ )?\d{4}-\d\d-\d\d[T \t]"
_STAMP = re.compile(
    rb"(?!%s(?:%s))" % (in_python(PREFIX).encode(), _OTHERWISE)
    + in_python(PREFIX).encode()
    + rb"\S+ \S+ (?:%s|[^\[\n]*)" % _QUOTED_USER
    + rb"\[(\d\d/[A-Z][a-z]{2}/\d{4}:\d\d):([0-5]\d):(?:[0-5]\d|60) ([+-]\d\d)([0-5]\d)\](?= \"|\s*\Z)"
)
_ISO = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d):[0-5]\d(?:[.,]\d+)?(?:Z|([+-]\d\d):?(\d\d))", re.ASCII)
_SECONDS = re.compile(r"\d{9,11}(?:\.\d+)?", re.ASCII)
_FARTHEST = timedelta(hours=18)
"""The largest offset that Spark reads: a line has a time if and only if it has an hour."""
_MONTHS = dict(zip(b"Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(), range(1, 13), strict=True))


def hour_of_combined(line: bytes, known: LogFormats | None = None) -> str | None:
    """Read the UTC hour in which a line was logged.

    Args:
        known: The formats that it may have; those that have a name when None.

    Returns:
        The hour as `2026-01-31T05`, or None if the line has no readable time.
    """
    line = line.lstrip(b"\0").removeprefix(_MARK).lstrip(b"\0")
    if found := _STAMP.match(line):
        return _hour_of_stamp(found)
    read = (known or formats()).read(line.rstrip(b"\r\n").decode(errors="replace"))
    return _hour_of_text(read["time"]) if read and "time" in read else None


def _hour_of_stamp(found: re.Match[bytes]) -> str | None:
    stamp, minute, zone_hours, zone_minutes = found.groups()
    whole_hours = zone_minutes == b"00"
    return _hour(stamp, b"00" if whole_hours else minute, zone_hours, zone_minutes)


def _hour_of_text(time: str) -> str | None:
    """Compute the UTC hour of a time that is a stamp, as ISO 8601, or in seconds since 1970."""
    if found := _STAMP.match(f"- - [{time}]".encode()):
        return _hour_of_stamp(found)
    try:
        if iso := _ISO.fullmatch(time):
            minute, hours, minutes = iso.groups()
            instant = datetime.strptime(f"{minute}{hours or '+00'}{minutes or '00'}", "%Y-%m-%dT%H:%M%z")
        elif _SECONDS.fullmatch(time):
            instant = datetime.fromtimestamp(float(time), timezone.utc)
        else:
            return None
        return instant.astimezone(timezone.utc).strftime("%Y-%m-%dT%H") if instant.year >= 1000 else None
    except (ValueError, OverflowError):
        return None


@lru_cache(maxsize=4096)
def _hour(stamp: bytes, minute: bytes, zone_hours: bytes, zone_minutes: bytes) -> str | None:
    """Compute the UTC hour of a stamp such as `17/May/2015:10`; cached, as many lines share an hour."""
    offset = timedelta(hours=int(zone_hours), minutes=int(zone_hours[:1] + zone_minutes))
    if abs(offset) > _FARTHEST:
        return None
    try:
        month = _MONTHS[stamp[3:6]]
        local = datetime(int(stamp[7:11]), month, int(stamp[:2]), int(stamp[12:14]), int(minute), tzinfo=timezone.utc)
        return (local - offset).strftime("%Y-%m-%dT%H") if local.year >= 1000 else None
    except (KeyError, ValueError, OverflowError):
        return None
