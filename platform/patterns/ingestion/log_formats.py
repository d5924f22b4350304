"""Compiles the declarations of log formats, of nginx (`log_format`) and Apache (`LogFormat`), into regular expressions.

A format is the string that the server's own configuration has. A further format is a further line of :data:`DECLARED`.
The expressions are Java's (Spark); :func:`in_python` makes them Python's, with the same meaning.

Whether a line begins with the virtual host or with the visitor's address is decided once, for all formats: a host that
is read as an address would make the whole blog one visitor.

Sources: nginx, "Module ngx_http_log_module"; Apache HTTP Server, "Module mod_log_config"; RFC 3164 for the prefix of
syslog.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from errors import ConfigurationError

FIELDS = ("address", "time", "request", "status", "host", "bytes", "forwarded", "referrer", "agent")
"""The fields of a request that are read from its line."""
OPTIONAL = FIELDS[4:]
"""Those that a format may lack. In quotes they are captured with the opening one, which tells what is empty from what
is not there."""

_COMBINED = '%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-Agent}i"'
_NGINX = (
    '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent"'
)
DECLARED = {
    "combined": _COMBINED,
    "common": '%h %l %u %t "%r" %>s %b',
    "combined_duration": f"{_COMBINED} %D",
    # Before `main`, whose last field may be any text.
    "combined_quoted_duration": f'{_NGINX} "$request_time"',
    "main": f'{_NGINX} "$http_x_forwarded_for"',
    "main_duration": f'{_NGINX} "$http_x_forwarded_for" $request_time',
    "main_quoted_duration": f'{_NGINX} "$http_x_forwarded_for" "$request_time"',
    "vhost_combined": '%v:%p %h %l %u %t "%r" %>s %O "%{Referer}i" "%{User-Agent}i"',
    "host_combined": f"$host {_NGINX}",
}
"""The named formats. A line is read by the first one that it fits; `$request_time` and `%D` are both a number."""

_NGINX_FIELDS = {
    "remote_addr": "address",
    "remote_user": "user",
    "time_local": "time",
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
    "r": "request",
    "s": "status",
    "b": "bytes",
    "B": "bytes",
    "O": "bytes",
    "v": "host",
    "V": "host",
    "p": "port",
    "D": "duration",
    "T": "duration",
    "{x-forwarded-for}i": "forwarded",
    "{forwarded}i": "forwarded",
    "{referer}i": "referrer",
    "{user-agent}i": "agent",
}
_IN_QUOTES = ("request", "forwarded", "referrer", "agent")
_NGINX_TOKEN = re.compile(r"\$\{?(\w+)\}?")
_APACHE_TOKEN = re.compile(r"%!?[\d,]*[<>]?((?:\{[^}]*\})?[a-zA-Z])")

_TEXT = r'[^"\\]*+(?:\\.[^"\\]*+)*+'
_PATTERNS = {
    "address": r"[^\s,]+",
    "host": r"(?:\[[0-9A-Fa-f:.]++\]|[^\s:,]++)",
    "port": r"\d++",
    "time": r"\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}",
    "status": r"\d{3}",
    "bytes": r"(?:\d+|-)",
    "duration": r"\d+(?:\.\d+)?",
}
# What proxies have forwarded, in front of the address that the last of them has seen: `10.0.0.2, 198.51.100.1`.
_LIST = r"[^\s,]++(?:, ?[^\s,]++)*"
# The name of a user may hold spaces, and brackets if it is quoted; it may be missing.
_USER_BEFORE_TIME = rf'(?:"{_TEXT}" (?=\[)|[^\[]*+)'
SYSLOG = r"(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d [^\s]++ [^\s:]++: )?+"
"""What syslog writes before a line, such as `Oct  3 21:59:42 web1 nginx: `, if it does."""
_ADDRESS = r"(?:\d{1,3}(?:\.\d{1,3}){3}|(?=[0-9A-Fa-f]*+:[0-9A-Fa-f]*+:)[0-9A-Fa-f:.]++(?:%[^\s,]++)?)"
_HOST_NAME = r"(?:(?=[0-9.]*+[^\s:0-9.])[^\s:\[,]++|\[[0-9A-Fa-f:.]++\])"
_HOST_FIRST = (
    rf"(?:{_HOST_NAME}:\d++ |(?:{_HOST_NAME}|[^\s:,]++:\d++) {_ADDRESS}[ ,]|{_HOST_NAME} [^\s,]++ - [^\s\[]++ \[)"
)
# `blog.example.org:443 …`, a name before an address, or one word more before the time than without a host.


class LogFormatUnusable(ConfigurationError):
    """Raised when the declaration of a log format cannot be compiled."""


@dataclass(frozen=True, kw_only=True)
class LogFormat:
    """A log format, compiled.

    Args:
        name: Name of the format.
        steps: Each field in the order of the line, and the expression that reads it and what stands before it.
        groups: Those of :data:`FIELDS` that the format has, in the order of the expression's groups.
    """

    name: str
    steps: tuple[tuple[str, str], ...]
    groups: tuple[str, ...]

    @property
    def line(self) -> str:
        """The expression for a line, from its beginning to its last field."""
        return self.prefix(len(self.steps))

    def prefix(self, count: int) -> str:
        """Return the expression for the beginning of a line, up to and with so many fields."""
        guard = "=" if self.steps[0][0] == "host" else "!"
        return f"{SYSLOG}(?{guard}{_HOST_FIRST})" + "".join(pattern for _, pattern in self.steps[:count])


@dataclass(frozen=True, kw_only=True)
class Misfit:
    """Where a line that fits no format departs from the nearest one.

    Args:
        pattern: Expression for the beginning of the line that does fit.
        format: The nearest format.
        field: Its first field that does not fit; `end` if the line goes on after the last one.
    """

    pattern: str
    format: str
    field: str

    @property
    def reason(self) -> str:
        """The reason of the line's rejection, such as `not_combined_log:time`."""
        return f"not_{self.format}_log:{self.field}"

    @property
    def problem(self) -> str:
        """What is wrong with the line, as the end of a sentence."""
        return "goes on after its last field" if self.field == "end" else f"its {self.field} does not fit"


@cache
def named() -> tuple[LogFormat, ...]:
    """Compile the named formats, in the order in which they are tried."""
    return tuple(compile_format(name, declaration) for name, declaration in DECLARED.items())


@cache
def any_line() -> tuple[str, dict[str, tuple[int, ...]]]:
    """Build the expression for a line of any named format, with the numbers of the groups of each of :data:`FIELDS`.

    At most one of the groups of a field takes part in a match; all others are empty.
    """
    groups = [field for one in named() for field in one.groups]
    numbers = {name: tuple(at for at, field in enumerate(groups, start=1) if field == name) for name in FIELDS}
    return f"(?:{'|'.join(one.line for one in named())})", numbers


@cache
def misfits() -> tuple[Misfit, ...]:
    """List all ways to fit no named format, those that fit most of its fields first; the last fits any line."""
    found: dict[str, tuple[int, Misfit]] = {}
    for one in named():
        fields = [*(field for field, _ in one.steps), "end"]
        for count in range(1, len(fields)):
            pattern = one.prefix(count)
            # Formats with the same beginning: the first one is the most common one.
            found.setdefault(pattern, (count, Misfit(pattern=pattern, format=one.name, field=fields[count])))
    ordered = [misfit for _, misfit in sorted(found.values(), key=lambda each: -each[0])]
    return (*ordered, Misfit(pattern="", format="combined", field="address"))


def format_of(line: str) -> str | None:
    """Return the name of the first named format that a line fits, None if it fits none."""
    return next((name for name, pattern in _compiled() if pattern.fullmatch(line)), None)


def misfit_of(line: str) -> Misfit:
    """Return where a line that fits no format departs from the nearest one."""
    return next(one for one in misfits() if re.match(in_python(one.pattern), line, re.ASCII))


def in_python(pattern: str) -> str:
    """Return an expression without possessive quantifiers, which Python has since 3.11 only.

    They save Java from trying what cannot fit; each is followed by something that what it takes cannot be.
    """
    return re.sub(r"(?<=[*+?}])\+", "", pattern)


@cache
def _compiled() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((one.name, re.compile(in_python(one.line) + r"\s*", re.ASCII)) for one in named())


def compile_format(name: str, declaration: str) -> LogFormat:
    """Compile a declaration as a server's configuration has it.

    Args:
        name: Name of the format: small letters and underscores.
        declaration: nginx's string (`$remote_addr - …`) or Apache's (`%h %l …`, its quotes escaped or not).

    Raises:
        LogFormatUnusable: A field of a request is missing or cannot be told from what follows it.
    """
    literals, fields = _parts(declaration)
    if "address" not in fields:
        # A server that logs only what its proxy has forwarded: the last address is the one that the proxy has seen.
        fields = ["address" if field == "forwarded" else field for field in fields]
    for field in FIELDS:
        if fields.count(field) != 1 and field not in OPTIONAL:
            raise _unusable(declaration, f"it does not have the {field} of a request once")
    # Bytes with and without headers, a host as asked for and as configured: the first one counts.
    fields = [f"further {name}" if name in OPTIONAL and name in fields[:at] else name for at, name in enumerate(fields)]
    steps, groups = [], []
    for number, field in enumerate(fields):
        before, after = literals[number], literals[number + 1]
        quoted = before[-1:] + after[:1] == '""'
        if field in _IN_QUOTES and not quoted:
            raise _unusable(declaration, f"the {field} is not in quotes")
        if not after and number + 1 < len(fields):
            raise _unusable(declaration, f"nothing separates {field} and {fields[number + 1]}")
        pattern = _PATTERNS.get(field, _TEXT if quoted else r"[^\s]+")
        if field == "user" and after == " [":
            pattern, after = _USER_BEFORE_TIME, "["
        opening = ""
        if field in OPTIONAL and quoted:
            before, opening = before[:-1], '"'
        captured = f"({opening}{pattern})" if field in FIELDS else pattern
        if field == "address" and "forwarded" not in fields:
            captured = f"(?:({_LIST}), ?)?{captured}"
            groups.append("forwarded")
        elif field == "address":
            captured = f"(?:{_LIST}, ?)?{captured}"
        groups += [field] if field in FIELDS else []
        # What closes a field belongs to it: without it the field is cut off.
        closing = after[:1] if quoted or field == "time" else ""
        literals[number + 1] = after[len(closing) :]
        steps.append((field, _literal(before) + captured + _literal(closing)))
    last, pattern = steps[-1]
    steps[-1] = (last, pattern + _literal(literals[-1].rstrip()))
    return LogFormat(name=name, steps=tuple(steps), groups=tuple(groups))


def _parts(declaration: str) -> tuple[list[str], list[str]]:
    """Split a declaration into the texts around its fields, and the fields."""
    if "$" in declaration:
        # nginx writes a dash where Apache has the name that identd knows.
        parts = _NGINX_TOKEN.split(re.sub(r"(?<= )-(?= )", "$ident", declaration))
        fields = [_NGINX_FIELDS.get(name, name) for name in parts[1::2]]
        return parts[::2], fields
    parts = _APACHE_TOKEN.split(declaration.replace('\\"', '"').replace("%t", "[%t]"))
    return parts[::2], [_APACHE_FIELDS.get(name if len(name) == 1 else name.lower(), name) for name in parts[1::2]]


def _literal(text: str) -> str:
    return re.sub(r"([^\w\s\"])", r"\\\1", text)


def _unusable(declaration: str, what: str) -> LogFormatUnusable:
    return LogFormatUnusable(
        what=f"the log format cannot be read: {what}",
        where=declaration,
        next_step=f"write it as in the server's configuration, like {DECLARED['main']}",
    )
