"""What syslog and the runtimes of containers write around a line of a log.

A runtime writes a line of more than 16 KiB in several entries; of 8 KiB, some do.

Sources: RFC 3164 and RFC 5424; systemd, "journalctl" (short formats); Docker, "JSON File logging driver"; Kubernetes,
"CRI container logs" (`P` is a part of a line, `F` its end).
"""

from __future__ import annotations

import re
from typing import NamedTuple

from blogdata.landing.json_lines import MAX_BYTES, text_of
from blogdata.landing.log_declarations import ADDRESS
from blogdata.landing.log_layouts import document_in

MARK = "\ufeff"
_SPACE = " \t\n\r\f\v"
_AT = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)"
# Bounds, as without them a megabyte without a space would be tried at each of its places.
_W = r"\S{1,300}"
_PLAIN = r"[^\s\[\"]{1,300}"
# How a line begins that has its time in brackets, or an object.
_LINE = rf"(?:\{{|(?:{_PLAIN} )?{ADDRESS}[ ,:]|(?!- ){_PLAIN} - [^\[\"]*\[\d\d/)"
# A tag without a colon only before what begins like a line, since the tag may be missing; a name with a dot is a host.
_NO_LINE = rf"(?!- |{ADDRESS}[ ,]|\{{)"
_TAG = rf"{_NO_LINE}(?:[^\s:]{{1,300}}: |[^\s:.]{{1,300}} (?={_LINE}))"
_BSD = rf"[A-Z][a-z]{{2}} {{1,2}}\d{{1,2}} (?:\d{{4}} )?\d\d:\d\d:\d\d(?:\.\d{{1,9}})? {_W} (?:{_TAG})?"
# Those of `short-full` and `short-unix`, besides ISO 8601.
_TIMES = rf"(?:{_AT}|[A-Z][a-z]{{2}} \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d [A-Z]{{1,5}}|\d{{9,10}}\.\d{{6}})"
_ISO = rf"{_TIMES} {_W} {_NO_LINE}[^\s:]{{1,300}}(?:: | (?={_LINE}))"
_STRUCTURED = r"(?:-|(?:\[(?:[^\]\\]|\\.)*\])+)"
_SYSLOG = (
    rf"(?:(?:<\d{{1,3}}>)?(?:{_BSD}|{_ISO})|<\d{{1,3}}>{_AT} {_W} (?:{_TAG})?"
    rf"|(?:<\d{{1,3}}>1 (?:{_AT}|-)|1 {_AT}) {_W} {_W} {_W} {_W} {_STRUCTURED} {MARK}?"
    rf"|<\d{{1,3}}>(?:{_TAG})?)"
)
_CONTAINER = (
    rf"(?:(?:\[pod/[^\s\]]{{1,300}}\] |[\w.-]{{1,300}} {{1,300}}\| )"
    rf"(?:{_AT} (?:std(?:out|err) F |(?!std(?:out|err) ))|(?!{_AT} ))|{_AT} (?!std(?:out|err) ))"
    rf"(?=\{{|(?:{ADDRESS}(?::\d+)? |{_PLAIN} {_PLAIN} [^\[\"]*)\[\d\d/)"
    rf"|{_AT} std(?:out|err) [FP](?::\S*)?(?: |$)"
)
_BEFORE = re.compile(rf"(?!{ADDRESS} |\{{)(?:{_SYSLOG}|{_CONTAINER})", re.ASCII)
"""What may stand before a line: what syslog writes, such as `Oct  3 21:59:42 web1 nginx: `, or what shows the logs of
containers writes before an object or a line with its time in brackets, such as `2022-10-03T19:59:42.123456789Z `,
`[pod/blog-5f/nginx] ` and `web-1  | `. Most lines begin with an address."""
_ENTRY = re.compile(rf"({_AT}) (std(?:out|err)) ([FP])(?::\S*)?(?: |$)", re.ASCII)
_ADDRESS = re.compile(ADDRESS, re.ASCII)
_NEEDED = {"log", "stream", "time"}
_KNOWN = {*_NEEDED, "attrs", "logtag", "kubernetes"}
_PART = 16_384
"""Bytes of a part of a line in Docker's files; the last part has less, and a line feed."""


class Entry(NamedTuple):
    """What a container's runtime writes for a line or a part of one."""

    stream: str
    text: str
    ends: bool
    time: str


class Written(NamedTuple):
    """A line that was written in parts, or what there is of it, and the places of these parts."""

    text: str
    places: tuple[int, ...]


def entry_of(line: str) -> Entry | None:
    """Return the entry that a line is: `2022-10-03T19:59:42.123Z stdout F …`, `{"log": "…\\n", "stream": …}`."""
    if line[:1] in ("\0", MARK):
        line = _unmarked(line)
    if line[4:5] == "-" and (match := _ENTRY.match(line)):
        return Entry(match[2], line[match.end() :].rstrip("\r\n"), match[3] == "F", match[1])
    document = document_in(line) if line[:1] == "{" and '"log"' in line else None
    if document is None or not _NEEDED <= document.keys() <= _KNOWN or not isinstance(document["log"], str):
        return None
    tag, text = document.get("logtag"), document["log"].encode(errors="replace").decode()
    # Without a line feed are also lines that a shipper has passed on, and the last one of a program.
    ends = text.endswith("\n") or (len(text.encode()) < _PART if tag is None else tag == "F")
    return Entry(str(document["stream"]), text.removesuffix("\n"), ends, str(document["time"]))


def decoded(raw: bytes) -> str | None:
    """Return the text of a line, also of a part that is cut within a character; None if it is not to be read."""
    if (text := text_of(raw)) is None and len(raw) <= MAX_BYTES:
        cut = raw.decode(errors="surrogateescape")
        return cut if _ENTRY.match(cut) else None
    return text


def recoded(text: str) -> str | None:
    """Decode the characters that were cut in the parts of a text; None if it is not UTF-8."""
    try:
        return text if text.isascii() else text.encode(errors="surrogateescape").decode()
    except UnicodeDecodeError:
        return None


def is_end_of(address: str, end: str) -> bool:
    """Return whether an address may be what is left of one that was cut: `0.0.0.1` of `10.0.0.1`, not of `a0.0.0.1`."""
    return address.endswith(end) and bool(_ADDRESS.fullmatch(address) or not _ADDRESS.fullmatch(end))


def bare_line(line: str) -> str:
    """Remove NUL bytes, as `copytruncate` leaves them, and a byte order mark before a line, and white space behind."""
    line = line.rstrip(_SPACE)
    return _unmarked(line) if line[:1] in ("\0", MARK) else line


def body_of(line: str) -> str:
    """Remove what syslog or what shows the logs of containers writes before a line."""
    header = _BEFORE.match(line)
    return line[header.end() :] if header else line


def _unmarked(line: str) -> str:
    return line.lstrip("\0").removeprefix(MARK).lstrip("\0")
