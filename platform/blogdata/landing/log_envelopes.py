"""What syslog and the runtimes of containers write around a line of a log.

Sources: RFC 3164 and RFC 5424; systemd, "journalctl" (short formats); Docker, "JSON File logging driver"; Kubernetes,
"CRI container logs".
"""

from __future__ import annotations

import re

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
)
_BEFORE = re.compile(rf"(?!{ADDRESS} |\{{)(?:{_SYSLOG}|{_CONTAINER})", re.ASCII)
"""What may stand before a line: what syslog writes, such as `Oct  3 21:59:42 web1 nginx: `, or what shows the logs of
containers writes before an object or a line with its time in brackets, such as `2022-10-03T19:59:42.123456789Z `,
`[pod/blog-5f/nginx] ` and `web-1  | `. Most lines begin with an address."""
_ENTRY = re.compile(rf"{_AT} std(?:out|err) [FP](?::\S*)?(?: |$)", re.ASCII)
_NEEDED = {"log", "stream", "time"}
_KNOWN = {*_NEEDED, "attrs", "logtag", "kubernetes"}


def bare_line(line: str) -> str:
    """Remove NUL bytes, as `copytruncate` leaves them, a byte order mark, white space behind a line, and what a
    container's runtime writes: `2022-10-03T19:59:42.123Z stdout F …`, `{"log": "…\\n", "stream": …}`."""
    line = _stripped(line)
    if line[4:5] == "-" and (entry := _ENTRY.match(line)):
        return _stripped(line[entry.end() :])
    document = document_in(line) if line[:1] == "{" and '"log"' in line else None
    if document is None or not _NEEDED <= document.keys() <= _KNOWN or not isinstance(document["log"], str):
        return line
    return _stripped(document["log"].encode(errors="replace").decode())


def body_of(line: str) -> str:
    """Remove what syslog or what shows the logs of containers writes before a line."""
    header = _BEFORE.match(line)
    return line[header.end() :] if header else line


def _stripped(line: str) -> str:
    line = line.rstrip(_SPACE)
    return line.lstrip("\0").removeprefix(MARK).lstrip("\0") if line[:1] in ("\0", MARK) else line
