"""Compiles declarations of log formats: strings of nginx and Apache, `#Fields` lines, and objects of JSON.

The expressions are Java's (Spark); :func:`in_python` makes them Python's, with the same meaning.

Sources: nginx, "Module ngx_http_log_module"; Apache HTTP Server, "Module mod_log_config"; W3C, "Extended Log File
Format"; Amazon CloudFront, "Standard log file fields"; IIS, "W3C logging"; RFC 3164 for the prefix of syslog.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from blogdata.errors import ConfigurationError

FIELDS = ("address", "time", "request", "status", "host", "bytes", "forwarded", "referrer", "agent")
"""The fields of a request that are read from its line."""
OPTIONAL = FIELDS[4:]
"""Those that a format may lack. In quotes they are captured with the opening one, which tells what is empty from what
is not there."""
PIECES = ("method", "target", "query", "date")
"""Fields that a format may have in place of `request` and of the day in `time`."""
CAPTURED = (*FIELDS, *PIECES)

HEADER = "#Fields:"
_TOKENS = {
    "address": ("remote_addr", "proxy_add_x_forwarded_for", "h", "a", "c-ip"),
    "user": ("remote_user", "u"),
    "ident": ("l",),
    "date": ("date",),
    "time": (
        *("time_local", "time_iso8601", "msec", "t", "{sec}t", "{%s}t", "{%d/%b/%Y:%H:%M:%S %z}t", "time"),
        *("{%d/%b/%Y:%T %z}t", "{%Y-%m-%dT%H:%M:%S%z}t", "{%Y-%m-%dT%T%z}t", "{%FT%T%z}t"),
    ),
    "request": ("request", "r"),
    "method": ("request_method", "m", "cs-method"),
    "target": ("request_uri", "uri", "U", "cs-uri", "cs-uri-stem"),
    "query": ("args", "query_string", "q", "cs-uri-query"),
    "status": ("status", "s", "sc-status"),
    "bytes": ("body_bytes_sent", "bytes_sent", "b", "B", "O", "sc-bytes"),
    "host": ("host", "http_host", "server_name", "v", "V", "{host}i", "cs-host", "cs(host)", "x-host-header"),
    "port": ("server_port", "p"),
    "forwarded": (
        *("http_x_forwarded_for", "http_forwarded", "{x-forwarded-for}i", "{forwarded}i"),
        *("x-forwarded-for", "cs(x-forwarded-for)"),
    ),
    "referrer": ("http_referer", "{referer}i", "cs(referer)"),
    "agent": ("http_user_agent", "{user-agent}i", "cs(user-agent)"),
    "duration": ("request_time", "D", "T"),
}
_FIELDS = {token: field for field, tokens in _TOKENS.items() for token in tokens}
"""Variables of nginx, directives of Apache and columns to the fields that they are."""
_ONE_ADDRESS = ("http_x_real_ip", "http_cf_connecting_ip", "{x-real-ip}i", "{cf-connecting-ip}i")
"""Headers with the one address that a proxy forwards."""
_IN_QUOTES = ("request", "forwarded", "referrer", "agent")
_NGINX_TOKEN = re.compile(r"\$\{?(\w+)\}?")
_APACHE_TOKEN = re.compile(r"%!?[\d,]*[<>]?((?:\{[^}]*\})?[a-zA-Z])")
_UNQUOTED = re.compile(r"(?<=[:,\[])\s*([$%][^\s,\"\]}]+\}?[a-zA-Z]?)\s*(?=[,\]}])")
_VARIABLE = re.compile(rf"\[?(?:{_NGINX_TOKEN.pattern}|{_APACHE_TOKEN.pattern})\]?")
_DIRECTIVE = re.compile(r"log_?format\s", re.IGNORECASE)
_STRING = r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""

_TEXT = r'[^"\\]*+(?:\\.[^"\\]*+)*+'
_ISO_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)"
_SECONDS = r"\d{9,11}(?:\.\d+)?"
_PATTERNS = {
    "address": r"[^\s,]+",
    "host": r"(?:\[[0-9A-Fa-f:.]++\]|[^\s:,]++)",
    "port": r"\d++",
    "time": r"\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}",
    **dict.fromkeys(("time_iso8601", "{%Y-%m-%dT%H:%M:%S%z}t", "{%Y-%m-%dT%T%z}t", "{%FT%T%z}t"), _ISO_TIME),
    **dict.fromkeys(("msec", "{sec}t", "{%s}t"), _SECONDS),
    "method": r"[A-Z-]++",
    "status": r"\d{3}",
    "bytes": r"(?:\d+|-)",
    "duration": r"\d+(?:\.\d+)?",
    "rest": r".*+",
}
_IN_COLUMNS = {
    "date": r"\d{4}-\d\d-\d\d",
    "time": r"\d\d:\d\d:\d\d(?:\.\d++)?+",
    **{field: _PATTERNS[field] for field in ("method", "status", "bytes")},
    "s-ip": r"[0-9A-Fa-f.:%]++",
}
# What proxies have forwarded, in front of the address that the last of them has seen: `10.0.0.2, 198.51.100.1`.
# Of thousands, what is repeated gives nothing back: otherwise Java's recursion would be as deep.
_LIST = r"[^\s,]++(?:, ?+[^\s,]++(?=,))*+"
# Each server that nginx has asked, one after the other: `10.0.0.7:80, 10.0.0.8:80`.
_UPSTREAM = r"[^\s,]++(?:(?:,| :) [^\s,]++)*"
# The name of a user may hold spaces, and brackets if it is quoted; it may be missing.
_USER_BEFORE_TIME = rf'(?:"{_TEXT}" (?=\[)|[^\[]*+)'
_MARKS = "\\x00*+(?:\ufeff)?+\\x00*+(?!\\x00|\ufeff)"
_AT = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d++)?+(?:Z|[+-]\d\d:\d\d)"
_SYSLOG = rf"(?:[A-Z][a-z]{{2}} [ \d]\d \d\d:\d\d:\d\d|{_AT}) [^\s]++ [^\s:]++: "
_ADDRESS = r"(?:\d{1,3}(?:\.\d{1,3}){3}|(?=[0-9A-Fa-f]*+:[0-9A-Fa-f]*+:)[0-9A-Fa-f:.]++(?:%[^\s,]++)?)"
_TAKEN_AT = rf"{_AT} (?:std(?:out|err) F |(?!std(?:out|err) ))"
_CONTAINER = (
    rf"(?:(?:\[pod/[^\s\]]++\] |[\w.-]++ ++\| )(?:{_TAKEN_AT}|(?!{_AT} ))|{_TAKEN_AT})"
    r"(?=\{|[^\s\[\"]++ [^\s\[\"]++ [^\[\"]*+\[\d\d/)"
)
# Most lines begin with an address. What does stand before a line is not tried without, in Python neither.
PREFIX = f"{_MARKS}(?:(?={_ADDRESS} )|(?!{_ADDRESS} )(?:{_SYSLOG}|{_CONTAINER}|(?!{_SYSLOG}|{_CONTAINER})))"
"""What may stand before a line: NUL bytes, as `copytruncate` leaves them, or a byte order mark; and what syslog writes,
such as `Oct  3 21:59:42 web1 nginx: `, or what runs containers writes before an object or a line with its time in
brackets, such as `2022-10-03T19:59:42.123456789Z stdout F `, `[pod/blog-5f/nginx] ` and `web-1  | `."""
_NAMED_HOST = r"(?=[0-9.]*+[^\s:0-9.])[^\s:\[,\"]++"
_HOST = rf"(?:{_NAMED_HOST}|\[[0-9A-Fa-f:.]++\])"
_HOST_FIRST = (
    rf"(?:{_NAMED_HOST}:\d++ |(?:{_HOST}(?::\d++)?+|[^\s:,]++:\d++) {_ADDRESS}[ ,]"
    rf"|{_HOST}(?::\d++)?+ (?:[^\s\[,]++ ){{1,6}}{_ADDRESS}[ ,]"
    rf"|{_HOST}(?::\d++)?+ [^\s,]++ - [^\s\[]++ \[)"
)
# `blog.example.org:443 …`, a name before an address, or one word more before the time than without a host. A number is
# no client either: `uniq -c` writes one.
_GUARDS = {
    ("address", "ident"): rf"(?!{_HOST_FIRST}|\d++ )",
    ("host", "address"): f"(?={_HOST_FIRST})",
    ("host", "port"): f"(?={_HOST_FIRST})",
}
# Where a host is declared to come first, it may be an address.
_DECLARED_HOST_FIRST = f"(?={_HOST_FIRST}|{_ADDRESS} {_ADDRESS}[ ,])"


class LogFormatUnusable(ConfigurationError):
    """Raised when the declaration of a log format cannot be compiled."""


@dataclass(frozen=True, kw_only=True)
class LogFormat:
    """A log format of text, compiled.

    Args:
        steps: The fields of a line, each with the expression up to its end.
        groups: Those of :data:`CAPTURED` that the format has, in the order of the expression's groups.
        guard: Expression for what a line must or must not begin with.
        coding: How the server encodes a space in the agent: `percent` (%20), `plus`, or nothing for as it is.
    """

    name: str
    steps: tuple[tuple[str, str], ...]
    groups: tuple[str, ...]
    guard: str = ""
    coding: str = ""

    @property
    def line(self) -> str:
        """The expression for a line, from its beginning to its last field."""
        return self.prefix(len(self.steps))

    def prefix(self, count: int) -> str:
        """Return the expression for the beginning of a line, up to and with so many fields."""
        return PREFIX + self.guard + "".join(pattern for _, pattern in self.steps[:count])


@dataclass(frozen=True, kw_only=True)
class JsonFormat:
    """A log format of JSON objects: the keys of the places where each field may be; the first that has any counts."""

    name: str
    paths: Mapping[str, tuple[tuple[str | int, ...], ...]]

    @property
    def dashes(self) -> tuple[str, ...]:
        """The fields whose absence is known, since the object has all headers: there is none, as a dash says."""
        return tuple(
            name for name in ("referrer", "agent") if any("headers" in path for path in self.paths.get(name, ()))
        )

    def read(self, document: object) -> dict[str, str]:
        """Read the fields that an object has."""
        found = dict.fromkeys(self.dashes, "-")
        for field, paths in self.paths.items():
            texts = (_text_at(document, path) for path in paths)
            if (value := next((text for text in texts if text is not None), None)) is not None:
                found[field] = value
        # Traefik's ClientHost is the whole list that was forwarded, if one was.
        before, comma, address = found.get("address", "").rpartition(",")
        return {"forwarded": before, **found, "address": address.removeprefix(" ")} if comma else found


def in_python(pattern: str) -> str:
    """Return an expression without possessive quantifiers, which Python has since 3.11 only.

    They save Java from trying what cannot fit; each is followed by something that what it takes cannot be.
    """
    return re.sub(r"(?<=[*+?}])\+", "", pattern)


def declaration_in(text: str) -> str:
    """Return the declaration in a directive of a server's configuration; any other text as it is."""
    text = text.strip()
    if not _DIRECTIVE.match(text):
        return text
    # nginx joins all strings of a `log_format`; Apache's `LogFormat` has one, and perhaps a quoted name.
    strings = re.findall(_STRING, text, re.DOTALL)[: None if text.startswith("log_") else 1]
    return re.sub(r"\\(['\"\\\n])", lambda escaped: escaped[1].strip("\n"), "".join(one[1:-1] for one in strings))


def compile_text(name: str, declaration: str, *, own: bool = False) -> LogFormat:
    """Compile nginx's string (`$remote_addr - …`), Apache's (`%h %l …`, its quotes escaped or not) or a `#Fields` line.

    Args:
        own: Whether it is the deployment's own: a host that comes first may then be an address.
    """
    if declaration.startswith(HEADER):
        return _compile_columns(name, declaration)
    literals, tokens = _parts(declaration)
    fields = [field for _, field in tokens]
    if "forwarded" not in fields:
        fields = ["forwarded" if token in _ONE_ADDRESS else field for token, field in tokens]
    if "address" not in fields:
        # A server that logs only what its proxy has forwarded: the last address is the one that the proxy has seen.
        fields = ["address" if field == "forwarded" else field for field in fields]
    _require(declaration, fields)
    # Bytes with and without headers, a host as asked for and as configured: the first one counts.
    fields = [
        f"further {name}" if name in (*OPTIONAL, *PIECES) and name in fields[:at] else name
        for at, name in enumerate(fields)
    ]
    steps, groups = [], []
    for number, field in enumerate(fields):
        before, after = literals[number], literals[number + 1]
        quoted = before[-1:] + after[:1] == '""'
        token = tokens[number][0]
        if field in _IN_QUOTES and not quoted and token not in _ONE_ADDRESS:
            raise unusable(declaration, f"the {field} is not in quotes")
        if not after and number + 1 < len(fields):
            raise unusable(declaration, f"nothing separates {field} and {fields[number + 1]}")
        bracketed = before[-1:] + after[:1] == "[]"
        usual = _TEXT if quoted else r"[^\]]*+" if bracketed else _UPSTREAM if "upstream_" in token else r"[^\s]+"
        pattern = _PATTERNS.get(token, _PATTERNS.get(field, usual))
        if field == "user" and after == " [":
            pattern, after = _USER_BEFORE_TIME, "["
        opening = ""
        if field in OPTIONAL and quoted:
            before, opening = before[:-1], '"'
        captured = f"({opening}{pattern})" if field in CAPTURED else pattern
        if field == "address" and "forwarded" not in fields:
            captured = f"(?:({_LIST}), ?)?{captured}"
            groups.append("forwarded")
        elif field == "address":
            captured = f"(?:{_LIST}, ?)?{captured}"
        groups += [field] if field in CAPTURED else []
        # What closes a field belongs to it: without it the field is cut off.
        closing = after[:1] if quoted or field == "time" else ""
        literals[number + 1] = after[len(closing) :]
        steps.append((field, _literal(before) + captured + _literal(closing)))
    # What follows the last field that is needed may be missing: servers have added fields over the years.
    last, pattern = steps[-1]
    steps[-1] = (last, f"(?:{pattern})?+" if last == "rest" else pattern + _literal(literals[-1].rstrip()))
    guards = {**_GUARDS, ("host", "address"): _DECLARED_HOST_FIRST} if own else _GUARDS
    return LogFormat(
        name=name,
        steps=tuple(steps),
        groups=tuple(groups),
        guard="" if literals[0] or literals[1] not in (" ", ":") else guards.get((fields[0], fields[1]), ""),
    )


def reads_columns(declaration: str, header: str) -> bool:
    """Return whether the format of a `#Fields` line reads lines with the columns of another one.

    What follows its last field of a request may be missing or another one, unless it is such a field, too.
    """
    known, found = _columns(declaration), _columns(header)
    needed = max(at for at, column in enumerate(known, start=1) if column in _FIELDS)
    is_open = len(known) > needed and not any(column in _FIELDS for column in found[needed:])
    return known == found or (is_open and known[:needed] == found[:needed])


def unusable(declaration: str, what: str) -> LogFormatUnusable:
    """Build the error for a declaration that cannot be compiled."""
    return LogFormatUnusable(
        what=f"the log format cannot be read: {what}",
        where=declaration,
        next_step="write it as in the server's configuration, like "
        '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" '
        '"$http_user_agent"',
    )


def _columns(declaration: str) -> list[str]:
    return declaration.removeprefix(HEADER).lower().split()


def _compile_columns(name: str, declaration: str) -> LogFormat:
    """Compile a `#Fields` line; a space or a tabulator separates columns, and no value has either."""
    columns = _columns(declaration)
    fields = [_FIELDS.get(column, "") for column in columns]
    _require(declaration, fields, ("date", "time", "address", "method", "target", "status"))
    # CloudFront's own host comes first, the one that was asked for later.
    taken = {field: at for at, field in enumerate(fields) if field}
    last = max(taken.values())
    steps = []
    for at, column in enumerate(columns[: last + 1]):
        field = fields[at]
        is_read = bool(field) and taken[field] == at
        pattern = _IN_COLUMNS.get(field or column, r"[^\s]++")
        captured = f"({pattern})" if is_read else pattern
        steps.append((field if is_read else column, captured if at == 0 else rf"[ \t]{captured}"))
    if last + 1 < len(columns):
        steps[-1] = (steps[-1][0], steps[-1][1] + r"(?:[ \t].*+)?+")
    coding = "percent" if "x-edge-location" in columns else "plus"
    return LogFormat(name=name, steps=tuple(steps), groups=tuple(sorted(taken, key=taken.__getitem__)), coding=coding)


def compile_object(name: str, declaration: str) -> JsonFormat:
    """Compile an object as the server's configuration has it, with variables or directives as values."""
    quoted = _UNQUOTED.sub(r'"\1"', declaration.replace('\\"', '"'))
    try:
        document = json.loads(quoted)
    except ValueError as error:
        raise unusable(declaration, f"it is not one JSON object: {error}") from error
    paths: dict[str, tuple[tuple[str | int, ...], ...]] = {}
    for path, value in _leaves(document):
        variable = _VARIABLE.fullmatch(value)
        field = _field_of(variable[1] or variable[2]) if variable else ""
        if field in CAPTURED:
            paths.setdefault(field, (path,))
    _require(declaration, [*paths])
    return JsonFormat(name=name, paths=paths)


def _leaves(value: object, above: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str]]:
    if isinstance(value, (dict, list)):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _leaves(inner, (*above, key))
    elif isinstance(value, str):
        yield above, value


def _text_at(document: Any, path: tuple[str | int, ...]) -> str | None:
    for key in path:
        if isinstance(document, dict) and isinstance(key, str):
            document = document.get(key)
        else:
            is_there = isinstance(document, list) and isinstance(key, int) and key < len(document)
            document = document[key] if is_there else None
    if isinstance(document, str):
        return document
    return str(document) if isinstance(document, (int, float)) and not isinstance(document, bool) else None


def _require(declaration: str, fields: list[str], needed: tuple[str, ...] = ("address", "time", "status")) -> None:
    if "method" not in needed:
        needed += ("method", "target") if "request" not in fields and "method" in fields else ("request",)
    for field in needed:
        if fields.count(field) != 1:
            raise unusable(declaration, f"it does not have the {field} of a request once")


def _parts(declaration: str) -> tuple[list[str], list[tuple[str, str]]]:
    """Split a declaration into the texts around its fields, and their names there and here."""
    if "$" in declaration:
        # nginx writes a dash where Apache has the name that identd knows.
        parts = _NGINX_TOKEN.split(re.sub(r"(?<= )-(?= )", "$ident", declaration.replace("\\t", "\t")))
    else:
        plain = declaration.replace('\\"', '"').replace("\\t", "\t").replace("%%", "\0")
        # A query that follows its path is read with it.
        parts = _APACHE_TOKEN.split(plain.replace("%t", "[%t]").replace("%U%q", "%U"))
        if strange := next((text for text in parts[::2] if "%" in text), None):
            raise unusable(declaration, f"this is no directive: {strange[strange.index('%') :]}")
    names = [_known(name) for name in parts[1::2]]
    return [text.replace("\0", "%") for text in parts[::2]], [(name, _field_of(name)) for name in names]


def _field_of(token: str) -> str:
    """Return the field that a variable of nginx or a directive of Apache, without its sign, stands for."""
    return _FIELDS.get(_known(token), token)


def _known(token: str) -> str:
    """Return a directive of Apache in the way in which it is known: the names of headers have no case."""
    return token.lower() if token.endswith("}i") else token


def _literal(text: str) -> str:
    return re.sub(r"([^\w\s\"])", r"\\\1", text)
