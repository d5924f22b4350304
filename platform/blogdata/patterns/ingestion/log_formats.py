"""The formats of access logs: those that have a name, and those that a deployment declares.

Each line is read by the first format that it fits. A further named format is a further entry of :data:`TEXTS` or
:data:`OBJECTS`, and nothing else.

Sources: Caddy, "Structured logging" and "log (Caddyfile directive)"; Traefik, "Access logs: list of available fields".
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import cache, cached_property, lru_cache
from urllib.parse import unquote

from blogdata.patterns.ingestion.log_declarations import (
    CAPTURED,
    HEADER,
    OPTIONAL,
    PIECES,
    PREFIX,
    JsonFormat,
    LogFormat,
    compile_object,
    compile_text,
    declaration_in,
    in_python,
    reads_columns,
)

_COMBINED = '%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-Agent}i"'
_NGINX = (
    '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent"'
)
TEXTS = {
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
    "traefik": f'{_NGINX} $number "$router" "$server" ${{request_time}}ms',
    "ingress_nginx": f"{_NGINX} $request_length $request_time [$proxy_upstream_name] [$alternative_name]"
    " $upstream_addr $upstream_response_length $upstream_response_time $upstream_status $req_id",
    "alb": "$type $time_iso8601 $load_balancer $remote_addr:$remote_port $target_and_port $request_seconds"
    ' $target_seconds $response_seconds $status $target_status $bytes_received $bytes_sent "$request"'
    ' "$http_user_agent" $rest',
    "s3": '$owner $bucket [$time_local] $remote_addr $requester $request_id $operation $key "$request" $status $error'
    ' $bytes_sent $object_size $total_time $turn_around_time "$http_referer" "$http_user_agent" $rest',
    "cloudfront": f"{HEADER} date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status"
    " cs(Referer) cs(User-Agent) cs-uri-query cs(Cookie) x-edge-result-type x-edge-request-id x-host-header"
    " cs-protocol cs-bytes time-taken x-forwarded-for ssl-protocol ssl-cipher x-edge-response-result-type"
    " cs-protocol-version fle-status fle-encrypted-fields c-port time-to-first-byte x-edge-detailed-result-type"
    " sc-content-type sc-content-len sc-range-start sc-range-end",
    "iis": f"{HEADER} date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip cs(User-Agent)"
    " cs(Referer) sc-status sc-substatus sc-win32-status time-taken",
}
"""The named formats of text; `$request_time` and `%D` are both a number."""
RARE = ("traefik", "ingress_nginx", "alb", "s3", "cloudfront", "iis")
"""Those that are tried for a line that fits none of the others."""
OBJECTS: Mapping[str, Mapping[str, str]] = {
    "caddy": {
        "address": "request.client_ip request.remote_ip request.remote_addr",
        "time": "ts",
        "method": "request.method",
        "target": "request.uri",
        "status": "status",
        "bytes": "size",
        "host": "request.host",
        "forwarded": "request.headers.X-Forwarded-For.0",
        "referrer": "request.headers.Referer.0",
        "agent": "request.headers.User-Agent.0",
    },
    "traefik_json": {
        "address": "ClientHost",
        "time": "StartUTC StartLocal time",
        "method": "RequestMethod",
        "target": "RequestPath",
        "status": "DownstreamStatus",
        "bytes": "DownstreamContentSize",
        "host": "RequestHost",
        "forwarded": "request_X-Forwarded-For",
        "referrer": "request_Referer",
        "agent": "request_User-Agent",
    },
    "nginx_json": {
        "address": "remote_addr remote_ip remote_address client_ip clientip client ip",
        "time": "time_local time_iso8601 msec @timestamp timestamp time ts date",
        "request": "request request_line",
        "method": "request_method method",
        "target": "request_uri uri path url",
        "query": "args query_string",
        "status": "status status_code response",
        "bytes": "body_bytes_sent bytes_sent bytes size",
        "host": "host http_host server_name vhost",
        "forwarded": "http_x_forwarded_for x_forwarded_for xff",
        "referrer": "http_referrer http_referer referrer referer",
        "agent": "http_user_agent user_agent useragent agent",
    },
}
"""The named formats of objects: the places of each field, the first one that has a value counts."""
NAMES = (*TEXTS, *OBJECTS)
OWN = "declared"
"""The name of every format that the deployment declares."""
COMMENT = "comment"
"""The name of the format of lines that tell about a log, such as `#Fields: date time`."""
UNKNOWN = "log"
"""The name where a line fits no format."""
COMMENTS = r"^#[A-Z][A-Za-z-]*: "
OBJECT = "object"
"""What is wrong with a line that begins like a JSON object, but is none."""
REQUIRED = ("address", "time", "request", "status")
_MARK = "\ufeff"
_PREFIX = re.compile(in_python(f"^{PREFIX}"), re.ASCII)
_QUOTED_USER = rb'"(?:[^"\\\n]|\\.)*" '
# Brackets are of the visitor in lines that have their time as JSON, in columns, or by ISO 8601.
_OTHERWISE = rb"\{|(?:[^\s.]+ )?\d{4}-\d\d-\d\d[T \t]"
_STAMP = re.compile(
    rb"(?!%s(?:%s))" % (in_python(PREFIX).encode(), _OTHERWISE)
    + in_python(PREFIX).encode()
    + rb"\S+ \S+ (?:%s|[^\[\n]*)" % _QUOTED_USER
    + rb"\[(\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:[0-5]\d):(?:[0-5]\d|60) ([+-]\d\d[0-5]\d)\](?= \"|\s*\Z)"
)
_ISO = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d):[0-5]\d(?:[.,]\d+)?(Z|[+-]\d\d:?\d\d)", re.ASCII)
_SECONDS = re.compile(r"\d{9,11}(?:\.\d+)?", re.ASCII)
_FARTHEST = timedelta(hours=18)
"""The largest offset that Spark reads: a line has a time if and only if it has an hour."""


@dataclass(frozen=True, kw_only=True)
class Misfit:
    """Where a line that fits no format departs from the nearest one: its first field that does not fit, or `end`."""

    format: str
    field: str
    pattern: str = ""

    @property
    def reason(self) -> str:
        """The reason of the line's rejection, such as `not_combined_log:time`."""
        return f"not_{self.format}_log:{self.field}"


@dataclass(frozen=True, kw_only=True)
class LogFormats:
    """The formats that lines are read by, in the order in which they are tried; the rare ones after all others."""

    usual: tuple[LogFormat, ...]
    rare: tuple[LogFormat, ...]
    objects: tuple[JsonFormat, ...]
    headers: tuple[str, ...]

    @property
    def texts(self) -> tuple[LogFormat, ...]:
        """All formats of text."""
        return (*self.usual, *self.rare)

    @cached_property
    def misfits(self) -> tuple[Misfit, ...]:
        """All ways to fit no format of text, those that fit most of its fields first; the last fits any line."""
        found: dict[str, tuple[tuple[int, bool, int], Misfit]] = {}
        for one in self.texts:
            fields = [*(field for field, _ in one.steps), "end"]
            for count in range(1, len(fields)):
                # Any word fits a field that is not read, and any text what was forwarded: they tell less.
                fits = sum(field in CAPTURED and field != "forwarded" for field in fields[:count])
                if fits:
                    misfit = Misfit(pattern=one.prefix(count), format=one.name, field=fields[count])
                    # Formats with the same beginning: the first one is the most common one.
                    found.setdefault(misfit.pattern, ((fits, one in self.usual, count), misfit))
        ordered = [misfit for _, misfit in sorted(found.values(), key=lambda each: each[0], reverse=True)]
        return (*ordered, Misfit(format="combined", field="address"))

    def format_of(self, line: str) -> str | None:
        """Return the name of the first format that a line fits, None if it fits none."""
        found = self._found(line)
        return found[0] if found else None

    def read(self, line: str) -> dict[str, str] | None:
        """Read the fields of a line by the first format that it fits, None if it fits none."""
        found = self._found(line)
        return found[1] if found else None

    def hour_of(self, line: bytes) -> str | None:
        """Read the UTC hour in which a line was logged, such as `2026-01-31T05`; None if it has no readable time.

        Where the time is in brackets, as in most formats, only the beginning of a line is parsed, up to the time stamp:
        a request or user agent that is truncated or full of invalid bytes does not affect the time.
        """
        line = line.lstrip(b"\0").removeprefix(codecs.BOM_UTF8).lstrip(b"\0")
        if found := _STAMP.match(line):
            return _hour(found[1], found[2])
        read = self.read(line.rstrip(b"\r\n").decode(errors="replace"))
        return _hour_of_text(read["time"]) if read and "time" in read else None

    def misfit_of(self, line: str) -> Misfit:
        """Return where a line that fits no format departs from the nearest one."""
        line = _bare(line)
        if not _body(line).startswith("{"):
            return next(one for one in self.misfits if re.match(in_python(one.pattern), line, re.ASCII))
        reads = self._reads(_body(line))
        if not reads:
            return Misfit(format=self.objects[-1].name, field=OBJECT)
        name, fields = max(reads, key=lambda read: sum(bool(read[1].get(field)) for field in REQUIRED))
        return Misfit(format=name, field=next(field for field in REQUIRED if not fields.get(field)))

    def has_columns(self, header: str) -> bool:
        """Whether some format reads lines with the columns of a `#Fields` line."""
        return any(reads_columns(one, header) for one in self.headers)

    def _found(self, line: str) -> tuple[str, dict[str, str]] | None:
        line = _bare(line)
        body = _body(line)
        if re.match(COMMENTS, body):
            return COMMENT, {}
        if body.startswith("{"):
            return next((read for read in self._reads(body) if all(read[1].get(field) for field in REQUIRED)), None)
        for one, pattern in self._patterns:
            if found := pattern.fullmatch(line):
                captured = {name: text for name, text in zip(one.groups, found.groups(), strict=True) if text}
                return one.name, _whole(captured, one.coding)
        return None

    def _reads(self, line: str) -> list[tuple[str, dict[str, str]]]:
        """Read an object by each format of objects; nothing if the line is none."""
        try:
            document = json.loads(line)
        except (ValueError, RecursionError):
            return []
        return [(one.name, _whole(one.read(document))) for one in self.objects if isinstance(document, dict)]

    @cached_property
    def _patterns(self) -> list[tuple[LogFormat, re.Pattern[str]]]:
        return [(one, re.compile(in_python(one.line) + r"\s*", re.ASCII)) for one in self.texts]


@cache
def formats(declared: tuple[str, ...] = ()) -> LogFormats:
    """Compile the formats that a deployment reads."""
    declared = tuple(declaration_in(one) for one in declared)
    own = [compile_text(OWN, one, own=True) for one in declared if not one.startswith("{")]
    named = [compile_text(name, declaration) for name, declaration in TEXTS.items()]
    objects = [compile_object(OWN, one) for one in declared if one.startswith("{")]
    return LogFormats(
        usual=(*own, *(one for one in named if one.name not in RARE)),
        rare=tuple(one for one in named if one.name in RARE),
        objects=(*objects, *map(_of_paths, OBJECTS)),
        headers=tuple(one for one in (*TEXTS.values(), *declared) if one.startswith(HEADER)),
    )


def _of_paths(name: str) -> JsonFormat:
    paths = {
        field: tuple(tuple(int(key) if key.isdecimal() else key for key in path.split(".")) for path in places.split())
        for field, places in OBJECTS[name].items()
    }
    return JsonFormat(name=name, paths=paths)


def _whole(captured: Mapping[str, str], coding: str = "") -> dict[str, str]:
    """Compose the fields that a format has in pieces, and decode them."""
    fields = {name: text for name, text in captured.items() if name not in PIECES}
    for name in OPTIONAL:
        if name in fields:
            fields[name] = fields[name].removeprefix('"')
    if "time" in captured:
        # Apache's directive for the time has brackets, also where it is a value of an object.
        fields["time"] = captured["time"].strip("[]")
    if "date" in captured:
        fields["time"] = f"{captured['date']}T{captured['time']}Z"
    if "request" not in fields and captured.get("method") and captured.get("target"):
        query = captured.get("query", "").removeprefix("?")
        asked = f"?{query}" if query not in ("", "-") else ""
        fields["request"] = f"{captured['method']} {captured['target']}{asked} HTTP/1.1"
    if coding and "agent" in fields:
        agent = fields["agent"]
        fields["agent"] = agent.replace("+", " ") if coding == "plus" else unquote(agent.replace("%25", "%"))
    return fields


def _bare(line: str) -> str:
    """Remove NUL bytes and a byte order mark, which take quadratic time without possessive quantifiers."""
    bare = line.lstrip("\0").removeprefix(_MARK).lstrip("\0")
    # A second mark fits no format: it stays behind the first one.
    return _MARK + bare if bare.startswith(_MARK) else bare


def _body(line: str) -> str:
    """Remove what may stand before a line."""
    return _PREFIX.sub("", line, count=1)


def _hour_of_text(time: str) -> str | None:
    """Compute the UTC hour of a time that is a stamp, as ISO 8601, or in seconds since 1970."""
    if found := _STAMP.match(f"- - [{time}]".encode()):
        return _hour(found[1], found[2])
    if iso := _ISO.fullmatch(time):
        return _hour(iso[1].encode(), iso[2].encode())
    return f"{datetime.fromtimestamp(float(time), timezone.utc):%Y-%m-%dT%H}" if _SECONDS.fullmatch(time) else None


@lru_cache(maxsize=4096)
def _hour(minute: bytes, zone: bytes) -> str | None:
    """Compute the UTC hour of a minute such as `17/May/2015:10:05`; cached, as many lines share it."""
    try:
        layout = "%d/%b/%Y:%H:%M%z" if b"/" in minute else "%Y-%m-%dT%H:%M%z"
        local = datetime.strptime((minute + zone).decode(), layout)  # noqa: DTZ007 - it has %z
        instant = local.astimezone(timezone.utc)
    except (ValueError, OverflowError):
        return None
    is_read = abs(local.utcoffset() or timedelta()) <= _FARTHEST and min(local.year, instant.year) >= 1000
    return f"{instant:%Y-%m-%dT%H}" if is_read else None
