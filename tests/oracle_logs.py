"""Reads an access log line, its request, and whether that is a page view, in plain Python, sharing no code with the
platform."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from urllib.parse import quote, unquote_to_bytes

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


def parts_of(request: str) -> tuple[str, str, str, str]:
    """Return the method, the page, the query and the host of a request; all empty unless it has three parts."""
    words = request.split(" ")
    if len(words) < 3 or (len(words) > 3 and not words[-1].startswith("HTTP/")):
        return "", "", "", ""
    target, host = " ".join(words[1:-1]), ""
    absolute = re.match(r"[a-z][a-z0-9+.-]*://[^/?#]*", target, re.IGNORECASE | re.ASCII)
    if absolute:
        host = absolute[0].partition("//")[2].rpartition("@")[2]
        target = target[absolute.end() :]
        target = target if target.startswith("/") else f"/{target}"
    path, _, query = target.partition("?")
    return words[0], page_of(path), query, host


def page_of(path: str) -> str:
    path = re.sub(r"\\(x[0-9a-fA-F]{2}|.)", lambda found: _unescaped(found[1]), path, flags=re.DOTALL)
    path = re.sub(r"%[0-9a-fA-F]{2}", lambda found: found[0].upper(), path)
    return re.sub(r"(?:%[89A-F][0-9A-F])+", lambda found: _characters(found[0]), path)


def _unescaped(escape: str) -> str:
    if len(escape) == 3:
        return f"%{escape[1:]}"
    return quote(escape, safe="") if escape in '"\\' else f"\\{escape}"


def _characters(escapes: str) -> str:
    text = unquote_to_bytes(escapes).decode("utf-8", "surrogateescape")
    return re.sub("[\udc80-\udcff]", lambda found: f"%{ord(found[0]) - 0xDC00:02X}", text)


ASSETS = tuple(
    ".css .js .mjs .png .jpg .jpeg .gif .ico .svg .webp .avif .woff .woff2 .ttf .otf .eot .map .mp4 .webm "
    ".mp3 .ogg .zip .gz .tar .tgz .jar .exe .iso .deb .rpm".split()
)
ASSET_PATHS = {"/robots.txt", "/favicon.ico", "/sitemap.xml"}
FEED_NAMES = {"index.xml", "atom.xml", "rss.xml", "feed.xml"}
DEVICES = ("ereader", "e-reader", "cubot", "m bot", "m-bot", "m_bot")
"""Words in agents of phones and e-readers."""


def filter_of(method: str, status: int, path: str, query: str, agent: str | None) -> str | None:
    """Return the first filter that removes a request, None for a page view; `agent` is None if none was logged."""
    if method != "GET" or not path.startswith("/"):
        return "method"
    if not (200 <= status < 300 or status == 304):
        return "status"
    if path.lower().endswith(ASSETS) or path in ASSET_PATHS:
        return "asset"
    segments = path.split("/")
    if (
        {"feed", "rss", "atom"} & set(segments)
        or path.endswith((".rss", ".atom"))
        or segments[-1] in FEED_NAMES
        or any(mark in query for mark in ("flav=rss", "flav=atom", "feed="))
    ):
        return "feed"
    return "crawler" if agent is not None and is_crawler(agent) else None


_crawlers: dict[str, bool] = {}


def is_crawler(agent: str) -> bool:
    """Tell whether a user agent is a machine's, by the functions of the crawler lists' own packages."""
    if agent not in _crawlers:
        import crawlerdetect
        import crawleruseragents

        known = agent in ("", "-") or crawleruseragents.is_crawler(agent)
        without = agent.lower()
        for device in DEVICES:
            without = without.replace(device, "")
        _crawlers[agent] = known or crawlerdetect.CrawlerDetect().is_crawler(
            without if without != agent.lower() else agent
        )
    return _crawlers[agent]
