"""Compiles the declarations of log formats, of nginx (`log_format`) and Apache (`LogFormat`), into regular expressions.

The expressions are Java's (Spark); :func:`in_python` makes them Python's, with the same meaning.

Whether a line begins with the virtual host or with the visitor's address is decided once, for all formats: a host that
is read as an address would make the whole blog one visitor.

Sources: nginx, "Module ngx_http_log_module"; Apache HTTP Server, "Module mod_log_config"; RFC 3164 for the prefix of
syslog.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from blogdata.errors import ConfigurationError

FIELDS = ("address", "time", "request", "status", "host", "bytes", "forwarded", "referrer", "agent")
"""The fields of a request that are read from its line."""
OPTIONAL = FIELDS[4:]
"""Those that a format may lack. In quotes they are captured with the opening one, which tells what is empty from what
is not there."""
PIECES = ("method", "target", "query", "date")
"""Fields that a format may have in place of `request` and of the day in `time`."""
CAPTURED = (*FIELDS, *PIECES)

_NGINX_FIELDS = {
    "remote_addr": "address",
    "remote_user": "user",
    "time_local": "time",
    "time_iso8601": "time",
    "msec": "time",
    "request_method": "method",
    "request_uri": "target",
    "uri": "target",
    "args": "query",
    "query_string": "query",
    "body_bytes_sent": "bytes",
    "bytes_sent": "bytes",
    "proxy_add_x_forwarded_for": "address",
    "http_x_forwarded_for": "forwarded",
    "http_forwarded": "forwarded",
    "http_referer": "referrer",
    "http_user_agent": "agent",
    "http_host": "host",
    "server_name": "host",
    "server_port": "port",
    "request_time": "duration",
}
_APACHE_FIELDS = {
    "h": "address",
    "a": "address",
    "l": "ident",
    "u": "user",
    "t": "time",
    "{sec}t": "time",
    "{%s}t": "time",
    "{%d/%b/%Y:%H:%M:%S %z}t": "time",
    "{%d/%b/%Y:%T %z}t": "time",
    "{%Y-%m-%dT%H:%M:%S%z}t": "time",
    "{%Y-%m-%dT%T%z}t": "time",
    "{%FT%T%z}t": "time",
    "r": "request",
    "m": "method",
    "U": "target",
    "q": "query",
    "s": "status",
    "b": "bytes",
    "B": "bytes",
    "O": "bytes",
    "v": "host",
    "V": "host",
    "{host}i": "host",
    "p": "port",
    "D": "duration",
    "T": "duration",
    "{x-forwarded-for}i": "forwarded",
    "{forwarded}i": "forwarded",
    "{referer}i": "referrer",
    "{user-agent}i": "agent",
}
_ONE_ADDRESS = ("http_x_real_ip", "http_cf_connecting_ip", "{x-real-ip}i", "{cf-connecting-ip}i")
"""Headers with the one address that a proxy forwards."""
_IN_QUOTES = ("request", "forwarded", "referrer", "agent")
_NGINX_TOKEN = re.compile(r"\$\{?(\w+)\}?")
_APACHE_TOKEN = re.compile(r"%!?[\d,]*[<>]?((?:\{[^}]*\})?[a-zA-Z])")

_TEXT = r'[^"\\]*+(?:\\.[^"\\]*+)*+'
_ISO_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)"
_SECONDS = r"\d{9,11}(?:\.\d+)?"
_PATTERNS = {
    "address": r"[^\s,]+",
    "host": r"(?:\[[0-9A-Fa-f:.]++\]|[^\s:,]++)",
    "port": r"\d++",
    "time": r"\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}",
    "time_iso8601": _ISO_TIME,
    "{%Y-%m-%dT%H:%M:%S%z}t": _ISO_TIME,
    "{%Y-%m-%dT%T%z}t": _ISO_TIME,
    "{%FT%T%z}t": _ISO_TIME,
    "msec": _SECONDS,
    "{sec}t": _SECONDS,
    "{%s}t": _SECONDS,
    "method": r"[A-Z-]++",
    "status": r"\d{3}",
    "bytes": r"(?:\d+|-)",
    "duration": r"\d+(?:\.\d+)?",
    "rest": r".*+",
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
_PERHAPS_PREFIX = f"{_MARKS}(?:{_SYSLOG})?+(?:{_CONTAINER})??"
"""The same before a line of a declared format, which may begin so itself: where it does not fit without."""
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
    """A log format, compiled.

    Args:
        groups: Those of :data:`CAPTURED` that the format has, in the order of the expression's groups.
        guard: Expression for what a line must or must not begin with.
        coding: How the server encodes a space in the agent: `percent` (%20), `plus`, or nothing for as it is.
    """

    name: str
    steps: tuple[tuple[str, str], ...]
    groups: tuple[str, ...]
    guard: str = ""
    before: str = PREFIX
    coding: str = ""

    @property
    def line(self) -> str:
        """The expression for a line, from its beginning to its last field."""
        return self.prefix(len(self.steps))

    def prefix(self, count: int) -> str:
        """Return the expression for the beginning of a line, up to and with so many fields."""
        return self.before + self.guard + "".join(pattern for _, pattern in self.steps[:count])


def in_python(pattern: str) -> str:
    """Return an expression without possessive quantifiers, which Python has since 3.11 only.

    They save Java from trying what cannot fit; each is followed by something that what it takes cannot be.
    """
    return re.sub(r"(?<=[*+?}])\+", "", pattern)


def compile_format(name: str, declaration: str, *, declared: bool = False) -> LogFormat:
    """Compile a declaration as a server's configuration has it.

    Args:
        declaration: nginx's string (`$remote_addr - …`) or Apache's (`%h %l …`, its quotes escaped or not).

    Raises:
        LogFormatUnusable: A field of a request is missing or cannot be told from what follows it.
    """
    literals, tokens = _parts(declaration)
    fields = [field for _, field in tokens]
    if "forwarded" not in fields:
        fields = ["forwarded" if field in _ONE_ADDRESS else field for field in fields]
    if "address" not in fields:
        # A server that logs only what its proxy has forwarded: the last address is the one that the proxy has seen.
        fields = ["address" if field == "forwarded" else field for field in fields]
    _require(fields, declaration)
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
    last, pattern = steps[-1]
    # What follows the last field that is needed may be missing: servers have added fields over the years.
    steps[-1] = (last, f"(?:{pattern})?+" if last == "rest" else pattern + _literal(literals[-1].rstrip()))
    first = (fields[0], fields[1])
    guards = {**_GUARDS, ("host", "address"): _DECLARED_HOST_FIRST} if declared else _GUARDS
    return LogFormat(
        name=name,
        steps=tuple(steps),
        groups=tuple(groups),
        guard="" if literals[0] or literals[1] not in (" ", ":") else guards.get(first, ""),
        before=_PERHAPS_PREFIX if declared else PREFIX,
    )


def field_of(token: str) -> str:
    """Return the field that a variable of nginx or a directive of Apache, without its sign, stands for."""
    name = _normal(token)
    return _NGINX_FIELDS.get(token) or _APACHE_FIELDS.get(name, token)


def unusable(declaration: str, what: str) -> LogFormatUnusable:
    """Build the error for a declaration that cannot be compiled."""
    return LogFormatUnusable(
        what=f"the log format cannot be read: {what}",
        where=declaration,
        next_step="write it as in the server's configuration, like "
        '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" '
        '"$http_user_agent"',
    )


def _require(fields: list[str], declaration: str) -> None:
    needed = ["address", "time", "status"]
    needed += ["method", "target"] if "request" not in fields and "method" in fields else ["request"]
    if strange := next((field for field in fields if "time" not in fields and field.endswith("}t")), None):
        known = ", ".join(f"%{name}" for name in _APACHE_FIELDS if name.endswith("}t"))
        raise unusable(declaration, f"the time %{strange} is none of %t, {known}")
    for field in needed:
        if fields.count(field) != 1:
            raise unusable(declaration, f"it does not have the {field} of a request once")


def _parts(declaration: str) -> tuple[list[str], list[tuple[str, str]]]:
    """Split a declaration into the texts around its fields, and their names there and here."""
    if "$" in declaration:
        # nginx writes a dash where Apache has the name that identd knows.
        parts = _NGINX_TOKEN.split(re.sub(r"(?<= )-(?= )", "$ident", declaration.replace("\\t", "\t")))
        return parts[::2], [(name, field_of(name)) for name in parts[1::2]]
    plain = declaration.replace('\\"', '"').replace("\\t", "\t").replace("%%", "\0")
    # A query that follows its path is read with it.
    parts = _APACHE_TOKEN.split(plain.replace("%t", "[%t]").replace("%U%q", "%U"))
    if strange := next((text for text in parts[::2] if "%" in text), None):
        raise unusable(declaration, f"this is no directive: {strange[strange.index('%') :]}")
    names = [_normal(name) for name in parts[1::2]]
    return [text.replace("\0", "%") for text in parts[::2]], [(name, field_of(name)) for name in names]


def _normal(directive: str) -> str:
    """Return a directive of Apache in the way in which it is known: the names of headers have no case."""
    return directive.lower() if directive.endswith("}i") else directive


def _literal(text: str) -> str:
    return re.sub(r"([^\w\s\"])", r"\\\1", text)
