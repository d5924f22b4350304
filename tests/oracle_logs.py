"""Parses the fields of an access log line in plain Python, sharing no code with the platform."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

_QUOTED = r'"(?:\\.|[^"\\])*"'
_LOG_FIELDS = {
    "address": r"(?:[^\s,]+(?:, ?[^\s,]+)*, ?)?[^\s,]+",
    "ident": r" \S+",
    "user": rf" (?:{_QUOTED} (?=\[)|[^\[]*)",
    "time": r"\[\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}\]",
    "request": f" {_QUOTED}",
    "status": r" \d{3}",
    "bytes": r" (?:\d+|-)",
    "referrer": f" {_QUOTED}",
    "agent": f" {_QUOTED}",
}
_NUMBER = r"\d+(?:\.\d+)?"
_TRAILING = (
    ("combined", ""),
    ("combined_duration", f" {_NUMBER}"),
    ("combined_quoted_duration", f' "{_NUMBER}"'),
    ("main", f" {_QUOTED}"),
    ("main_duration", f" {_QUOTED} {_NUMBER}"),
    ("main_quoted_duration", f' {_QUOTED} "{_NUMBER}"'),
)
_MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
_SPACE = " \t\n\r\f\v"


def request_of(text: str) -> dict[str, str] | str:
    """Return the fields of a line in combined log format or a variant of it, and the name; or why it is none."""
    if "\x1f" in text:
        return "not_combined_log:control_character"
    text, at = re.sub("\\A\0*(?:\ufeff\0*)?", "", text), 0
    fields: dict[str, str] = {}
    for name, pattern in _LOG_FIELDS.items():
        match = re.compile(pattern, re.ASCII).match(text, at)
        if match is None:
            is_common = name == "referrer" and not text[at:].strip(_SPACE)
            return {**fields, "format": "common"} if is_common else f"not_combined_log:{name}"
        fields[name], at = match[0], match.end()
        if name == "address":
            fields["forwarded"], _, fields["address"] = (part.strip(" ") for part in match[0].rpartition(","))
    formats = (name for name, pattern in _TRAILING if re.fullmatch(rf"{pattern}\s*", text[at:], re.ASCII))
    name = next(formats, "")
    return {**fields, "format": name} if name else "not_combined_log:end"


def log_time(text: str) -> datetime | None:
    """Parse a log's time stamp; a leap second becomes the second before."""
    day, month, year = int(text[:2]), text[3:6], int(text[7:11])
    hour, minute, second, sign = int(text[12:14]), int(text[15:17]), int(text[18:20]), text[21]
    zone = int(text[22:24]), int(text[24:26])
    if zone > (18, 0) or zone[1] > 59:
        return None
    offset = timedelta(hours=zone[0], minutes=zone[1]) * (-1 if sign == "-" else 1)
    try:
        place = _MONTHS.index(month) + 1
        return datetime(year, place, day, hour, minute, 59 if second == 60 else second, tzinfo=timezone.utc) - offset
    except (ValueError, OverflowError):
        return None
