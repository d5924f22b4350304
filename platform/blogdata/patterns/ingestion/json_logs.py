"""Access logs as JSON, one object a line: where each field of a request is in it.

A declaration is the object as the server's configuration has it, with nginx's variables or Apache's directives as
values: `{"time": "$time_iso8601", "client": {"ip": "$remote_addr"}, ...}`.

Sources: Caddy, "Structured logging" and "log (Caddyfile directive)"; Traefik, "Access logs: list of available fields".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from blogdata.patterns.ingestion.log_declarations import CAPTURED, field_of, unusable

_UNQUOTED = re.compile(r"(?<=[:,\[])\s*([$%][^\s,\"\]}]+\}?[a-zA-Z]?)\s*(?=[,\]}])")
_VARIABLE = re.compile(r"\[?(?:\$\{?(\w+)\}?|%!?[\d,]*[<>]?((?:\{[^}]*\})?[a-zA-Z]))\]?")
_STEP = re.compile(r'\["([^"]*)"\]|\[(\d+)\]')


@dataclass(frozen=True, kw_only=True)
class JsonFormat:
    """A log format of JSON objects.

    Args:
        paths: Fields of a request (:data:`.log_declarations.CAPTURED`) to the places where the value may be, the first
            one that has any counts: `$["request"]["uri"]`.
    """

    name: str
    paths: Mapping[str, tuple[str, ...]]
    dashes: tuple[str, ...] = ()

    def read(self, document: object) -> dict[str, str]:
        """Read the fields that an object has."""
        found = dict.fromkeys(self.dashes, "-")
        for field, paths in self.paths.items():
            texts = (_text(_at(document, path)) for path in paths)
            value = next((text for text in texts if text is not None), None)
            if value is not None:
                found[field] = value
        # Traefik's ClientHost is the whole list that was forwarded, if one was.
        before, comma, address = found.get("address", "").rpartition(",")
        return {"forwarded": before, **found, "address": address.removeprefix(" ")} if comma else found


def compile_json(name: str, declaration: str) -> JsonFormat:
    """Compile the declaration of a format of JSON objects.

    Raises:
        LogFormatUnusable: It is not JSON, or a field of a request is missing.
    """
    quoted = _UNQUOTED.sub(r'"\1"', declaration if '\\"' not in declaration else declaration.replace('\\"', '"'))
    try:
        document = json.loads(quoted)
    except ValueError as error:
        raise unusable(declaration, f"it is not one JSON object: {error}") from error
    paths: dict[str, tuple[str, ...]] = {}
    for path, value in _leaves(document, "$"):
        variable = _VARIABLE.fullmatch(value)
        field = field_of(variable[1] or variable[2]) if variable else ""
        if field in CAPTURED:
            paths.setdefault(field, (path,))
    target = "request" if "request" in paths or "method" not in paths else "target"
    for field in ("address", "time", "status", target):
        if field not in paths:
            raise unusable(declaration, f"it does not have the {field} of a request")
    return JsonFormat(name=name, paths=paths)


def _leaves(value: object, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, f'{path}["{key}"]')
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _leaves(inner, f"{path}[{number}]")
    elif isinstance(value, str):
        yield path, value


def _at(document: Any, path: str) -> object:
    for key, number in _STEP.findall(path):
        if isinstance(document, dict) and not number:
            document = document.get(key)
        elif isinstance(document, list) and number and int(number) < len(document):
            document = document[int(number)]
        else:
            return None
    return document


def _text(value: object) -> str | None:
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _keys(*names: str) -> tuple[str, ...]:
    return tuple(f'$["{name}"]' for name in names)


def _request(*names: str) -> tuple[str, ...]:
    return tuple(f'$["request"]["{name}"]' for name in names)


def _header(name: str) -> tuple[str, ...]:
    return (f'$["request"]["headers"]["{name}"][0]',)


CADDY = JsonFormat(
    name="caddy",
    paths={
        "address": _request("client_ip", "remote_ip", "remote_addr"),
        "time": _keys("ts"),
        "method": _request("method"),
        "target": _request("uri"),
        "status": _keys("status"),
        "bytes": _keys("size"),
        "host": _request("host"),
        "forwarded": _header("X-Forwarded-For"),
        "referrer": _header("Referer"),
        "agent": _header("User-Agent"),
    },
    dashes=("referrer", "agent"),
)
TRAEFIK = JsonFormat(
    name="traefik_json",
    paths={
        "address": _keys("ClientHost"),
        "time": _keys("StartUTC", "StartLocal", "time"),
        "method": _keys("RequestMethod"),
        "target": _keys("RequestPath"),
        "status": _keys("DownstreamStatus"),
        "bytes": _keys("DownstreamContentSize"),
        "host": _keys("RequestHost"),
        "forwarded": _keys("request_X-Forwarded-For"),
        "referrer": _keys("request_Referer"),
        "agent": _keys("request_User-Agent"),
    },
)
NGINX = JsonFormat(
    name="nginx_json",
    paths={
        "address": _keys("remote_addr", "remote_ip", "remote_address", "client_ip", "clientip", "client", "ip"),
        "time": _keys("time_local", "time_iso8601", "msec", "@timestamp", "timestamp", "time", "ts", "date"),
        "request": _keys("request", "request_line"),
        "method": _keys("request_method", "method"),
        "target": _keys("request_uri", "uri", "path", "url"),
        "query": _keys("args", "query_string"),
        "status": _keys("status", "status_code", "response"),
        "bytes": _keys("body_bytes_sent", "bytes_sent", "bytes", "size"),
        "host": _keys("host", "http_host", "server_name", "vhost"),
        "forwarded": _keys("http_x_forwarded_for", "x_forwarded_for", "xff"),
        "referrer": _keys("http_referrer", "http_referer", "referrer", "referer"),
        "agent": _keys("http_user_agent", "user_agent", "useragent", "agent"),
    },
)
NAMED = (CADDY, TRAEFIK, NGINX)
