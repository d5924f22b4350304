"""Parses the request of a log line in plain Python, sharing no code with the platform."""

from __future__ import annotations

import re
from urllib.parse import quote, unquote_to_bytes


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
