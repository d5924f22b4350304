r"""The request and the referrer of a log line: method, path and query; referring host.

A page has one name, however its path was sent and logged: `/caf%c3%a9`, `/caf%C3%A9`, Apache's `/caf\xc3\xa9` and
`/café` are the page `/café`, as a browser shows it. The escapes of a server are read as percent escapes. Of these,
valid UTF-8 outside ASCII is decoded; all others stay, in upper case: `%2F`, `%3F` and `%23` are no separators, and
`%7E` and `%E9` are left as sent. Slashes and dots are not touched.

Sources: RFC 3986, section 2.1 and 6.2.2.1; RFC 9112, section 3.2 (forms of a target); the Unicode Standard, table 3-7
(well-formed UTF-8).
"""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

_LOGGED = re.compile(r"\\x([0-9A-Fa-f]{2})")
_ESCAPES = re.compile("(?:%[0-9A-Fa-f]{2})+")
_UNDECODED = re.compile("[\x00-\x7f\udc80-\udcff]")
_ORIGIN = re.compile("[a-zA-Z][a-zA-Z0-9+.-]*://(?:[^/?#]*@)?([^/?#]*)/?")
_AUTHORITY = re.compile(r"(?:[a-zA-Z][a-zA-Z0-9+.-]*://)?(?:[^/?#@\s]*@)?([^/?#]*)", re.ASCII)
_HOST = re.compile(r"(([a-z0-9._-]+|\[[0-9a-f:.]+\])|[^:\[\]]+)(?::[0-9]*)?")


class Target(NamedTuple):
    """What a request asks for; all parts are empty if it does not have three. The host is there if it is in the URL."""

    method: str
    path: str
    query: str
    host: str = ""


def target_of(request: str) -> Target:
    """Read the parts of a request such as `GET /a?b=c HTTP/1.1`.

    The path begins with `/` unless the request is for no path, like `OPTIONS *`.
    """
    method, _, rest = request.partition(" ")
    target, space, protocol = rest.rpartition(" ")
    # A space in the target is not allowed, and sent: only the protocol tells where it ends.
    if not space or (" " in target and not protocol.startswith("HTTP/")):
        return Target("", "", "")
    host = ""
    if target[:1] != "/" and (origin := _ORIGIN.match(target)):
        host, target = origin[1], f"/{target[origin.end() :]}"
    path, _, query = target.partition("?")
    return Target(method, page_of(path), query, host)


def page_of(path: str) -> str:
    """Return the one name of the page with a path, as logged."""
    if "%" not in path and "\\" not in path:
        return path
    return _ESCAPES.sub(lambda match: _characters(match[0]), as_sent(path))


def referring_host(referrer: str | None) -> str | None:
    """Return the referring host of a request, in lower case; None if there is none."""
    if referrer in (None, "", "-") or not (match := _AUTHORITY.match(referrer)):
        return None
    host = _HOST.fullmatch(page_of(match[1]).lower())
    return host[1] if host and (host[2] or all(map(_is_of_name, host[1]))) else None


def as_sent(text: str) -> str:
    """Return a text as it was sent: the escapes of a server as percent escapes."""
    # Two backslashes are one: the first of them begins no escape of the second.
    text = _LOGGED.sub(r"%\1", text.replace(r"\\", "%5C"))
    return text.replace(r"\"", "%22")


def _characters(escapes: str) -> str:
    text = bytes.fromhex(escapes.replace("%", "")).decode("utf-8", "surrogateescape")
    return _UNDECODED.sub(lambda match: f"%{ord(match[0]) & 0xFF:02X}", text)


def _is_of_name(character: str) -> bool:
    return character.isalnum() or character in "._-" or unicodedata.category(character)[0] in "LMN"
