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
FORMATS = {"common", "vhost_combined", "host_combined", *dict(_TRAILING)}
_MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
_SPACE = " \t\n\r\f\v"


def request_of(text: str) -> dict[str, str] | str:
    """Return a line's fields and the name of its format, or the reason why it fits no format."""
    if "\x1f" in text:
        return "not_combined_log:control_character"
    text = re.sub("\\A\0*(?:\ufeff\0*)?", "", text)
    if text.startswith(("\0", "\ufeff")):
        return "not_combined_log:address"
    syslog = re.match(r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S+ [^\s:]+: ", text, re.ASCII)
    at = syslog.end() if syslog else len(_of_a_container(text))
    host = _host_before_the_address(text[at:])
    at += len(host)
    named = rf"(?!- |(?:{_ADDRESS})[ ,])[^\s,]+ (?:[^\s\[,]+ ){{0,5}}(?:{_ADDRESS})[ ,]"
    if host and re.match(named, text[at:], re.ASCII):
        return f"not_{'vhost' if re.search(r':[0-9]+ $', host) else 'host'}_combined_log:address"
    if not host and re.match(r"\d+ ", text[at:], re.ASCII):
        return "not_combined_log:address"
    of_host = ("vhost_combined" if re.search(r":\d+ $", host, re.ASCII) else "host_combined") if host else ""
    found: dict[str, str] = {}
    for name, pattern in _LOG_FIELDS.items():
        field = re.compile(pattern, re.ASCII).match(text, at)
        if field is None:
            if name == "referrer" and not of_host and not text[at:].strip(_SPACE):
                return {**found, "format": "common"}
            return f"not_{of_host or 'combined'}_log:{name}"
        found[name], at = field[0], field.end()
        if name == "address":
            found["forwarded"], _, found["address"] = (part.strip(" ") for part in field[0].rpartition(","))
    trailing = (("", ""),) if of_host else _TRAILING
    for name, pattern in trailing:
        if re.fullmatch(rf"{pattern}\s*", text[at:], re.ASCII):
            return {**found, "format": of_host or name}
    # The nearest format is the one with the most matching fields before the first mismatch.
    for name, pattern in sorted(trailing, key=lambda one: -one[1].count(" ")):
        if re.match(pattern, text[at:], re.ASCII):
            return f"not_{of_host or name}_log:end"
    raise AssertionError(text)


_ADDRESS = r"\d{1,3}(\.\d{1,3}){3}|[0-9A-Fa-f]*:[0-9A-Fa-f]*:[0-9A-Fa-f:.]*(%\S+)?"


def _of_a_container(text: str) -> str:
    """Return the prefix that a container runtime writes before a line: its name, a time, or both; empty if none."""
    if re.match(f"({_ADDRESS}) ", text, re.ASCII):
        return ""
    if entry := re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z stdout F ?", text, re.ASCII):
        return entry[0]
    name = re.match(r"\[pod/[^\s\]]+\] |[A-Za-z0-9_.-]+ +\| ", text, re.ASCII)
    end = name.end() if name else 0
    taken = re.compile(
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d) ((stdout|stderr) )?(F )?", re.ASCII
    ).match(text, end)
    if taken and bool(taken[3]) != bool(taken[5]):
        return ""
    end = taken.end() if taken else end
    words, _, rest = text[end:].partition("[")
    is_line = '"' not in words and re.match(r"\S+ \S+ ", words, re.ASCII) and re.match(r"\d\d/", rest, re.ASCII)
    return text[:end] if is_line or text[end:].startswith("{") else ""


def _host_before_the_address(text: str) -> str:
    """Return the virtual host before the address, with the following space; empty if there is none."""
    words = text.split(" ")
    if len(words) < 2 or not words[0] or re.search(r"\s", words[0], re.ASCII):
        return ""
    host = re.fullmatch(r"(\[[0-9A-Fa-f:.]+\]|[^\s:,]+)(:\d+)?", words[0], re.ASCII)
    if host is None:
        return ""
    named = re.search(r"[^0-9.]", host[1]) is not None and (
        "[" not in host[1] or re.fullmatch(r"\[[0-9A-Fa-f:.]+\]", host[1]) is not None
    )
    named = named and '"' not in host[1]
    first, comma, _ = words[1].partition(",")
    address = re.fullmatch(_ADDRESS, first, re.ASCII)
    address = address if comma or len(words) > 2 else None
    bracketed = host[1][0] == "["
    one_more = (bracketed or not host[2]) and re.match(r"\S+ [^\s,]+ - [^\s\[]+ \[", text, re.ASCII)
    port = host[2] and not bracketed
    behind = next((at for at, word in enumerate(words[1:8], 1) if re.search(r"[\s\[,]", word, re.ASCII)), 8)
    later = [word.partition(",")[0] for word in words[2 : behind + 1] if "[" not in word]
    ends = [at + 1 < len(words) or "," in words[at] for at in range(2, 2 + len(later))]
    further = any(end and re.fullmatch(_ADDRESS, word, re.ASCII) for word, end in zip(later, ends, strict=True))
    before = (named and (port or address or one_more or (further and all(words[1:behind])))) or (host[2] and address)
    return words[0] + " " if before else ""


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
