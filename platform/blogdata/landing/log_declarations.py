"""Compiles declarations of log formats: strings of nginx and Apache, `#Fields` lines, and objects of JSON.

Each becomes what reads the body of a line (:mod:`.log_layouts`), without what syslog or a container's runtime writes
before it.

Sources: nginx, "Module ngx_http_log_module"; Apache HTTP Server, "Module mod_log_config"; W3C, "Extended Log File
Format"; Amazon CloudFront, "Standard log file fields"; IIS, "W3C logging".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from blogdata.errors import ConfigurationError
from blogdata.landing.log_layouts import (
    CAPTURED,
    FIELD_PATTERNS,
    FIELDS,
    LISTED,
    PIECES,
    ColumnFormat,
    JsonFormat,
    TextFormat,
)

HEADER = "#Fields:"
_TOKENS = {
    "address": ("remote_addr", "proxy_add_x_forwarded_for", "h", "a", "c-ip"),
    "user": ("remote_user", "u"),
    "ident": ("l",),
    "date": ("date",),
    "time": (
        *("time_local", "time_iso8601", "msec", "t", "{sec}t", "{%s}t", "{%d/%b/%Y:%H:%M:%S %z}t", "time"),
        *("{%d/%b/%Y:%T %z}t", "{%Y-%m-%dT%H:%M:%S%z}t", "{%Y-%m-%dT%T%z}t", "{%FT%T%z}t"),
        *("local_time", "{%d/%b/%Y:%H:%M:%S}t", "{%d/%b/%Y:%T}t", "{msec}t", "{usec}t"),
    ),
    "request": ("request", "r"),
    "method": ("request_method", "m", "cs-method"),
    "target": ("request_uri", "uri", "U", "cs-uri", "cs-uri-stem"),
    "query": ("args", "query_string", "q", "cs-uri-query"),
    "status": ("status", "s", "sc-status"),
    "bytes": ("body_bytes_sent", "bytes_sent", "b", "B", "O", "sc-bytes"),
    "host": ("host", "http_host", "server_name", "v", "V", "{host}i", "cs-host", "cs(host)", "x-host-header"),
    "port": ("server_port", "p", "remote_port"),
    "forwarded": (
        *("http_x_forwarded_for", "http_forwarded", "{x-forwarded-for}i", "{forwarded}i"),
        *("x-forwarded-for", "cs(x-forwarded-for)"),
    ),
    "referrer": ("http_referer", "{referer}i", "cs(referer)"),
    "agent": ("http_user_agent", "{user-agent}i", "cs(user-agent)"),
    "duration": ("request_time", "D", "T"),
}
_FIELDS = {token: field for field, tokens in _TOKENS.items() for token in tokens}
"""Variables of nginx, directives of Apache and columns to the fields that they are, the best of each field first."""
_RANKS = {token: rank for rank, token in enumerate(_FIELDS)}
_ONE_ADDRESS = ("http_x_real_ip", "http_cf_connecting_ip", "{x-real-ip}i", "{cf-connecting-ip}i")
"""Headers with the one address that a proxy forwards."""
_IN_QUOTES = ("request", "forwarded", "referrer", "agent")
_NGINX_TOKEN = re.compile(r"\$\{?(\w+)\}?")
_APACHE_TOKEN = re.compile(r"%!?[\d,]*[<>]?((?:\{[^}]*\})?[a-zA-Z])")
_UNQUOTED = re.compile(r"\"(?:[^\"\\]|\\.)*\"|(?<=[:,\[])\s*([$%][^\s,\"\]}]+\}?[a-zA-Z]?)\s*(?=[,\]}])")
_VARIABLE = re.compile(rf"\[?(?:{_NGINX_TOKEN.pattern}|{_APACHE_TOKEN.pattern})\]?")
_DIRECTIVE = re.compile(r"log_?format\s", re.IGNORECASE)
_STRING = r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""

_TEXT = r'[^"\\]*(?:\\.[^"\\]*)*'
_ISO_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)"
_LOCAL_TIME = r"\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d(?:\.\d{1,6})?"
_SECONDS = r"\d{9,20}(?:\.\d+)?"
_PATTERNS = {
    "port": r"\d+",
    "time": r"\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}",
    **dict.fromkeys(("time_iso8601", "{%Y-%m-%dT%H:%M:%S%z}t", "{%Y-%m-%dT%T%z}t", "{%FT%T%z}t"), _ISO_TIME),
    **dict.fromkeys(("msec", "{sec}t", "{%s}t", "{msec}t", "{usec}t"), _SECONDS),
    **dict.fromkeys(("local_time", "{%d/%b/%Y:%H:%M:%S}t", "{%d/%b/%Y:%T}t"), _LOCAL_TIME),
    **FIELD_PATTERNS,
    "duration": r"\d+(?:\.\d+)?",
    # With the headers that HAProxy is told to capture.
    "queues": r"\d+/\d+(?: \{[^}]*\}){0,2}",
    "rest": r".*",
}
# No address and no host is longer; without a bound, a megabyte without a space would be tried at each of its places.
_WORD = r"[^\s,]{1,300}"
# What proxies have forwarded, in front of the address that the last of them has seen: `10.0.0.2, 198.51.100.1`.
_LIST = rf"(?:{_WORD}, ?)+"
# The name of a user may hold spaces, and brackets if it is quoted; it may be missing.
_USER_BEFORE_TIME = rf'(?:"{_TEXT}" (?=\[)|[^\[]*)'
ADDRESS = r"(?:\d{1,3}(?:\.\d{1,3}){3}|(?=[0-9A-Fa-f]{0,4}:[0-9A-Fa-f]{0,4}:)[0-9A-Fa-f:.]{1,45}(?:%[^\s,]{1,45})?)"
_NAMED_HOST = r"(?=[0-9.]{0,300}[^\s:0-9.])[^\s:\[,\"]{1,300}"
_HOST = rf"(?:{_NAMED_HOST}|\[[0-9A-Fa-f:.]{{1,45}}\])"
_HOST_FIRST = (
    rf"(?:{_NAMED_HOST}:\d+ |(?:{_HOST}(?::\d+)?|[^\s:,]{{1,300}}:\d+) {ADDRESS}[ ,]"
    rf"|{_HOST}(?::\d+)? (?:[^\s\[,]{{1,300}} ){{1,6}}{ADDRESS}[ ,]"
    rf"|{_HOST}(?::\d+)? {_WORD} - [^\s\[]{{1,300}} \[)"
)
# Of two names and an address, the second name is no client: `blog-5f nginx 192.0.2.1 - - [`.
_NO_SECOND_NAME = rf"(?!(?!- |{ADDRESS}[ ,])[^\s,]{{1,300}} (?:[^\s\[,]{{1,300}} ){{0,5}}{ADDRESS}[ ,])"
# `blog.example.org:443 …`, a name before an address, or one word more before the time than without a host. A number is
# no client either: `uniq -c` writes one.
_GUARDS = {
    ("address", "ident"): rf"(?!{_HOST_FIRST}|\d+ )",
    ("host", "address"): f"(?={_HOST_FIRST})",
    ("host", "port"): f"(?={_HOST_FIRST})",
}
# Where a host is declared to come first, it may be an address.
_DECLARED_HOST_FIRST = f"(?={_HOST_FIRST}|{ADDRESS} {ADDRESS}[ ,])"


class LogFormatUnusable(ConfigurationError):
    """Raised when the declaration of a log format cannot be compiled."""


def declaration_in(text: str) -> str:
    """Return the declaration in a directive of a server's configuration; any other text as it is."""
    text = text.strip()
    if not _DIRECTIVE.match(text):
        return text
    # nginx joins all strings of a `log_format`; Apache's `LogFormat` has one, and perhaps a quoted name.
    strings = re.findall(_STRING, text, re.DOTALL)[: None if text.startswith("log_") else 1]
    return re.sub(r"\\(['\"\\\n])", lambda escaped: escaped[1].strip("\n"), "".join(string[1:-1] for string in strings))


def compile_text(name: str, declaration: str, *, is_declared: bool = False) -> TextFormat | ColumnFormat:
    """Compile nginx's string (`$remote_addr - …`), Apache's (`%h %l …`, its quotes escaped or not) or a `#Fields` line.

    In a format that the deployment declares, a host that comes first may be an address.
    """
    if declaration.startswith(HEADER):
        columns = compile_columns(name, declaration)
        if columns.lacks:
            raise _lacks(declaration, columns.lacks)
        return columns
    literals, tokens = _parts(declaration)
    fields = _fields_of(tokens)
    _require(declaration, fields)
    # Bytes with and without headers, a host as asked for and as configured: the first one counts.
    fields = [
        f"further {name}" if name in (*FIELDS[4:], *PIECES) and name in fields[:at] else name
        for at, name in enumerate(fields)
    ]
    steps, groups = [], []
    for number, field in enumerate(fields):
        before, after = literals[number], literals[number + 1]
        quoted = before[-1:] + after[:1] == '""'
        token, is_last = tokens[number], number + 1 == len(fields)
        # A value that ends with a tabulator, or with a line of such values, may have anything else.
        tabbed = after[:1] == "\t" or (is_last and not after and "\t" in before)
        if field in _IN_QUOTES and not (quoted or tabbed) and token not in _ONE_ADDRESS:
            raise unusable(declaration, f"the {field} is not in quotes")
        if not (after or is_last):
            raise unusable(declaration, f"nothing separates {field} and {fields[number + 1]}")
        pattern = r"[^\t]*" if field in _IN_QUOTES and tabbed else _pattern(token, field, before, after)
        if field == "user" and after == " [":
            pattern, after = _USER_BEFORE_TIME, "["
        captured = f"({pattern})" if field in CAPTURED else pattern
        if field == "address":
            captured = (_NO_SECOND_NAME if fields[0] == "host" and not is_declared else "") + f"({_LIST})?{captured}"
            groups.append(LISTED)
        groups += [field] if field in CAPTURED else []
        # What closes a field belongs to it: without it the field is cut off.
        closing = after[:1] if quoted or field == "time" else ""
        literals[number + 1] = after[len(closing) :]
        steps.append((field, re.escape(before) + captured + re.escape(closing)))
    # What follows the last field that is needed may be missing: servers have added fields over the years.
    last, pattern = steps[-1]
    steps[-1] = (last, f"(?:{pattern})?" if last == "rest" else pattern + re.escape(literals[-1].rstrip()))
    guards = {**_GUARDS, ("host", "address"): _DECLARED_HOST_FIRST} if is_declared else _GUARDS
    if not literals[0] and literals[1] in (" ", ":"):
        first, pattern = steps[0]
        steps[0] = first, guards.get((fields[0], fields[1]), "") + pattern
    return TextFormat(name=name, steps=tuple(steps), groups=tuple(groups))


def _pattern(token: str, field: str, before: str, after: str) -> str:
    """Build the expression for a value between two literals; it contains nothing that the second one begins with."""
    if token in _PATTERNS or field in _PATTERNS:
        return _PATTERNS.get(token, _PATTERNS.get(field, ""))
    around = before[-1:] + after[:1]
    if field != "address" and around in ('""', "[]"):
        return _TEXT if around == '""' else r"[^\]]*"
    end = re.escape(after[:1].strip())
    if field == "address":
        # The port of an address is behind its last colon.
        return rf"{_WORD}(?=:\d)" if end == ":" else rf"[^\s,{end}]{{1,300}}"
    if field == "host":
        port = r"(?::\d{1,5})?" if token in ("http_host", "{host}i") and end != ":" else ""
        return rf"(?:\[[0-9A-Fa-f:.]{{1,45}}\]|[^\s:,{end}]{{1,300}}){port}"
    # Each server that nginx has asked, one after the other: `10.0.0.7:80, 10.0.0.8:80`.
    return rf"(?!: )[^\s,{end}]+(?:(?:,| :) [^\s,{end}]+)*" if "upstream_" in token else rf"[^\s{end}]+"


def compile_columns(name: str, header: str) -> ColumnFormat:
    """Compile a `#Fields` line."""
    columns = columns_of(header)
    fields = [_FIELDS.get(column, "") for column in columns]
    needed = ("date", "time", "address", "method", "target", "status")
    # CloudFront's own host comes first, the one that was asked for later.
    taken = {field: at for at, field in enumerate(fields) if field in CAPTURED}
    return ColumnFormat(
        name=name,
        all_columns=columns,
        taken=taken,
        lacks=next((field for field in needed if fields.count(field) != 1), None),
    )


def columns_of(header: str) -> tuple[str, ...]:
    """Return the names of the columns of a `#Fields` line, in lower case."""
    return tuple(header.removeprefix(HEADER).lower().split())


def compile_object(name: str, declaration: str) -> JsonFormat:
    """Compile an object as the server's configuration has it, with variables or directives as values."""
    quoted = _UNQUOTED.sub(lambda match: f'"{match[1]}"' if match[1] else match[0], declaration.replace('\\"', '"'))
    try:
        document = json.loads(quoted)
    except ValueError as error:
        raise unusable(declaration, f"it is not one JSON object: {error}") from error
    variables = [(path, _VARIABLE.fullmatch(value)) for path, value in _leaves(document)]
    places = [(_known(variable[1] or variable[2]), path) for path, variable in variables if variable]
    # A path as it was asked for, before what the server has made of it.
    places.sort(key=lambda place: _RANKS.get(place[0], len(_RANKS)))
    paths: dict[str, tuple[tuple[str | int, ...], ...]] = {}
    for field, (_, path) in zip(_fields_of([token for token, _ in places]), places, strict=True):
        if field in (*CAPTURED, "user"):
            paths.setdefault(field, (path,))
    _require(declaration, [*paths])
    return JsonFormat(name=name, paths=paths)


def unusable(declaration: str, what: str) -> LogFormatUnusable:
    return LogFormatUnusable(
        what=f"the log format cannot be read: {what}",
        where=declaration,
        next_step="write it as in the server's configuration, like "
        '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" '
        '"$http_user_agent"',
    )


def _leaves(value: object, above: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str]]:
    if isinstance(value, (dict, list)):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _leaves(inner, (*above, key))
    elif isinstance(value, str):
        yield above, value


def _require(declaration: str, fields: list[str]) -> None:
    of_request = ("method", "target") if "request" not in fields and "method" in fields else ("request",)
    for field in ("address", "time", "status", *of_request):
        if fields.count(field) != 1:
            raise _lacks(declaration, field)


def _lacks(declaration: str, field: str) -> LogFormatUnusable:
    return unusable(declaration, f"it does not have the {field} of a request once")


def _parts(declaration: str) -> tuple[list[str], list[str]]:
    """Split a declaration into the texts around its variables or directives, and the names of these."""
    if "$" in declaration:
        # nginx writes a dash where Apache has the name that identd knows.
        parts = _NGINX_TOKEN.split(re.sub(r"(?<= )-(?= )", "$ident", declaration.replace("\\t", "\t")))
    else:
        plain = declaration.replace('\\"', '"').replace("\\t", "\t").replace("%%", "\0")
        # A query that follows its path is read with it.
        parts = _APACHE_TOKEN.split(plain.replace("%t", "[%t]").replace("%U%q", "%U"))
        if strange := next((text for text in parts[::2] if "%" in text), None):
            raise unusable(declaration, f"this is no directive: {strange[strange.index('%') :]}")
    return [text.replace("\0", "%") for text in parts[::2]], [_known(name) for name in parts[1::2]]


def _fields_of(tokens: list[str]) -> list[str]:
    """Return the fields that variables of nginx or directives of Apache, without their signs, stand for."""
    fields = [_FIELDS.get(token, token) for token in tokens]
    if "forwarded" not in fields:
        fields = ["forwarded" if token in _ONE_ADDRESS else field for token, field in zip(tokens, fields, strict=True)]
    if "address" not in fields:
        # A server that logs only what its proxy has forwarded: the last address is the one that the proxy has seen.
        fields = ["address" if field == "forwarded" else field for field in fields]
    return fields


def _known(token: str) -> str:
    """Return a directive of Apache in the way in which it is known: the names of headers have no case."""
    return token.lower() if token.endswith("}i") else token
