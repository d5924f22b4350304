"""Parses the request and the referrer of a log line in plain Python, sharing no code with the platform."""

from __future__ import annotations

import re
import unicodedata
from urllib.parse import quote, unquote_plus, unquote_to_bytes


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


def campaign_of(query: str) -> str | None:
    """Return the campaign of a query, None without UTM parameters."""
    found: dict[str, str] = {}
    for piece in query.split("&"):
        # An HTML-escaped `&amp;` leaves `amp;` before the key.
        words = piece.split(";")
        for pair in (";".join(words[at:]) for at in range(len(words))):
            key, mark, value = pair.partition("=")
            name = key.lower().replace("%5f", "_").removeprefix("utm_")
            if mark and len(name) < len(key) and name in ("source", "medium", "campaign"):
                found.setdefault(name, _value_of(value.partition("#")[0]))
    parts = [found.get(name, "") for name in ("source", "medium", "campaign")]
    return " / ".join(part or "-" for part in parts) if any(parts) else None


def host_of(referrer: str) -> str | None:
    """Return the host of a referrer, None if there is none."""
    address = referrer if re.match(r"[a-z][a-z0-9+.-]*://", referrer, re.IGNORECASE | re.ASCII) else f"//{referrer}"
    authority = re.split("[/?#]", address.partition("//")[2])[0]
    user, _, host = authority.partition("@")
    authority = page_of(host if "@" in authority and not re.search(r"\s", user, re.ASCII) else authority).lower()
    found = re.fullmatch(r"(\[[0-9a-f:.]+\]|[^:\[\]]+)(:[0-9]*)?", authority)
    if referrer in ("", "-") or found is None:
        return None
    named = all(unicodedata.category(one)[0] in "LMN" or one in "._-" for one in found[1])
    return found[1] if named or found[1].startswith("[") else None


def _value_of(value: str) -> str:
    escaped = re.sub(r"\\(x[0-9a-fA-F]{2}|.)", lambda found: _unescaped(found[1]), value, flags=re.DOTALL)
    broken = re.search("%(?![0-9a-f]{2})", escaped, re.IGNORECASE)
    text = escaped if broken else unquote_plus(escaped)
    blank = {one for one in text if one.isspace() or unicodedata.category(one)[0] in "ZC"}
    text = " ".join("".join(" " if one in blank else one for one in text).split())
    return "other" if re.search("@|%(25)*40", text) or len(text) > 64 else text.lower()


def _unescaped(escape: str) -> str:
    if len(escape) == 3:
        return f"%{escape[1:]}"
    return quote(escape, safe="") if escape in '"\\' else f"\\{escape}"


def _characters(escapes: str) -> str:
    text = unquote_to_bytes(escapes).decode("utf-8", "surrogateescape")
    return re.sub("[\udc80-\udcff]", lambda found: f"%{ord(found[0]) - 0xDC00:02X}", text)
