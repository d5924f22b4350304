"""The formats of access logs, those that have a name and those that a deployment declares, and reading lines by them.

Each line is read by the first format that it fits. In a log with a `#Fields` line the lines below it have its columns,
until the next one. A further named format is a further entry of :data:`TEXTS` or :data:`OBJECTS`, and nothing else.

Sources: Caddy, "Structured logging" and "log (Caddyfile directive)"; Traefik, "Access logs: list of available fields";
HAProxy, "Configuration Manual", section 8.2.3 (HTTP log format); Microsoft, "Azure Front Door: access log" and
"Application Gateway: access log"; Google Cloud, "LogEntry: HttpRequest".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo
from functools import cache, lru_cache
from zoneinfo import ZoneInfo

from blogdata.landing.json_lines import MAX_BYTES, iso_time
from blogdata.landing.log_declarations import (
    HEADER,
    columns_of,
    compile_columns,
    compile_object,
    compile_text,
    declaration_in,
)
from blogdata.landing.log_envelopes import MARK, Entry, Written, bare_line, body_of, entry_of, is_end_of, recoded
from blogdata.landing.log_layouts import EDGE, REQUIRED, ColumnFormat, JsonFormat, TextFormat, TextFormats, document_in

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
    "host_combined": f"$host {_NGINX}",
    "vhost_combined": '%v:%p %h %l %u %t "%r" %>s %O "%{Referer}i" "%{User-Agent}i"',
    "traefik": f'{_NGINX} $number "$router" "$server" ${{request_time}}ms',
    "ingress_nginx": f"{_NGINX} $request_length $request_time [$proxy_upstream_name] [$alternative_name]"
    " $upstream_addr $upstream_response_length $upstream_response_time $upstream_status $req_id",
    "alb": "$type $time_iso8601 $load_balancer $remote_addr:$remote_port $target_and_port $request_seconds"
    ' $target_seconds $response_seconds $status $target_status $bytes_received $bytes_sent "$request"'
    ' "$http_user_agent" $rest',
    "s3": '$owner $bucket [$time_local] $remote_addr $requester $request_id $operation $key "$request" $status $error'
    ' $bytes_sent $object_size $total_time $turn_around_time "$http_referer" "$http_user_agent" $rest',
    "haproxy": "$remote_addr:$remote_port [$local_time] $frontend $backend_and_server $timers $status $bytes_sent"
    ' $sent_cookie $set_cookie $termination $connections $queues "$request" $rest',
    "cloudfront": f"{HEADER} date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status"
    " cs(Referer) cs(User-Agent) cs-uri-query cs(Cookie) x-edge-result-type x-edge-request-id x-host-header"
    " cs-protocol cs-bytes time-taken x-forwarded-for ssl-protocol ssl-cipher x-edge-response-result-type"
    " cs-protocol-version fle-status fle-encrypted-fields c-port time-to-first-byte x-edge-detailed-result-type"
    " sc-content-type sc-content-len sc-range-start sc-range-end",
    "iis": f"{HEADER} date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip cs(User-Agent)"
    " cs(Referer) sc-status sc-substatus sc-win32-status time-taken",
}
"""The named formats of text; `$request_time` and `%D` are both a number."""
_RARE = ("traefik", "ingress_nginx", "alb", "s3", "haproxy", "cloudfront", "iis")
"""Those that a line which fits none is nearer to only if it has more of their fields."""
OBJECTS = {
    "caddy": "address=request.client_ip|request.remote_ip|request.remote_addr time=ts method=request.method"
    " target=request.uri status=status bytes=size host=request.host"
    " forwarded=request.headers.X-Forwarded-For.0 referrer=request.headers.Referer.0"
    " agent=request.headers.User-Agent.0",
    "traefik_json": "address=ClientHost time=StartUTC|StartLocal|time method=RequestMethod target=RequestPath"
    " status=DownstreamStatus bytes=DownstreamContentSize host=RequestHost"
    " forwarded=request_X-Forwarded-For referrer=request_Referer agent=request_User-Agent",
    "nginx_json": "address=remote_addr|remote_ip|remote_address|client_ip|clientip|client|ip"
    " time=time_local|time_iso8601|msec|@timestamp|timestamp|time|ts|date request=request|request_line"
    " method=request_method|method target=request_uri|uri|path|url query=args|query_string"
    " status=status|status_code|response bytes=body_bytes_sent|bytes_sent|bytes|size"
    " host=host|http_host|server_name|vhost forwarded=http_x_forwarded_for|x_forwarded_for|xff"
    " referrer=http_referrer|http_referer|referrer|referer"
    " agent=http_user_agent|user_agent|useragent|agent",
    "azure": "address=properties.clientIp|properties.clientIP time=time|timeStamp|timestamp|properties.time"
    " method=properties.httpMethod target=properties.requestUri query=properties.requestQuery"
    " status=properties.httpStatusCode|properties.httpStatus"
    " bytes=properties.responseBytes|properties.sentBytes"
    " host=properties.hostName|properties.originalHost|properties.host"
    " referrer=properties.referer|properties.referrer agent=properties.userAgent",
    "google": "address=httpRequest.remoteIp time=timestamp method=httpRequest.requestMethod"
    " target=httpRequest.requestUrl status=httpRequest.status bytes=httpRequest.responseSize"
    " referrer=httpRequest.referer agent=httpRequest.userAgent",
}
"""The named formats of objects: each field with its places, of which the first one that has a value counts."""
NAMES = (*TEXTS, *OBJECTS)
OWN = "declared"
"""The name of every format that the deployment declares."""
COMMENT = "comment"
"""The name of the format of lines that are no request: `#Fields: date time`, prose behind a `#`, parts of lines."""
UNKNOWN = "log"
"""The name where a line fits no format."""
# Brackets are of the visitor in lines that have their time as JSON, in columns, by ISO 8601, or as the second word.
_BRACKETED = re.compile(
    r"(?!\{|(?:[^\s.]+ )?\d{4}-\d\d-\d\d[T \t])\S+ [^\s\[]\S* (?:\"(?:[^\"\\\n]|\\.)*\" |[^\[\n]*)"
    r"\[([^\]]{1,40})\](?= \"|\s*\Z)",
    re.ASCII,
)
_STAMP = re.compile(
    r"(\d\d)/([A-Z][a-z]{2})/(\d{4}):(\d\d):([0-5]\d):([0-5]\d|60)(?:\.(\d{1,6}))?(?: ([+-])(\d\d)([0-5]\d))?", re.ASCII
)
_LONGEST_STAMP = 40
_SINCE_1970 = re.compile(r"\d{9,20}(?:\.\d+)?", re.ASCII)
_MONTHS = {name: at for at, name in enumerate("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(), start=1)}
_FARTHEST = timedelta(hours=18)
"""The largest offset of a time from UTC."""
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)

Fields = dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Misfit:
    """Where a line that fits no format departs from the nearest one: its first field that does not fit, or `end`."""

    format: str
    field: str

    @property
    def reason(self) -> str:
        """The reason of the line's rejection, such as `not_combined_log:time`."""
        return f"not_{self.format}_log:{self.field}"


@dataclass(frozen=True, kw_only=True)
class LogFormats:
    """What reads lines, in the order in which it is tried; `zone` is that of times without an offset."""

    declared: tuple[TextFormats | ColumnFormat, ...]
    readers: tuple[TextFormats | ColumnFormat, ...]
    objects: tuple[JsonFormat, ...]
    zone: tzinfo = timezone.utc

    def of_log(self) -> LogReader:
        return LogReader(self)

    def hour_of(self, line: bytes) -> str | None:
        """Return the UTC hour of a line that stands alone, as :meth:`LogReader.hour_of`."""
        return LogReader(self).hour_of(line)


class LogReader:
    """Reads the lines of one log, in their order."""

    def __init__(self, formats: LogFormats) -> None:
        self._formats, self._readers = formats, formats.readers
        self.header = ""
        self.begun = dict[str, Written]()
        """Of each stream the line that has begun and not ended."""

    def read(self, line: str, *, within: bool = False) -> tuple[str, Fields] | Misfit:
        """Return the name of a line's format and its fields, or where it departs from the nearest format.

        A request has all of :data:`REQUIRED`. A line of the format `comment` has no fields, or, if it is a part that a
        later line ends, the time at which it was written. `within`: it is the text of an entry, and none itself.
        """
        bare = bare_line(line)
        body = body_of(bare)
        if not within and (body is not bare or body[:1] == "{") and (entry := entry_of(line)):
            return self.joined(entry)[0]
        if "\x1f" in line:
            return Misfit(format="combined", field="control_character")
        if body is not bare or body[:1] == "#":
            # What looks like that of a container, or a comment, may be declared to begin a line.
            for reader in self._formats.declared:
                if (request := reader.read(bare)) is not None:
                    return request
        if body[:1] == "{":
            return self._object(body)
        if body[:1] == MARK:
            return Misfit(format="combined", field="address")
        if body[:1] == "#":
            if body.startswith(HEADER):
                self.begin(body)
            return COMMENT, {}
        for reader in self._readers:
            if (request := reader.read(body)) is not None:
                return request
        return self._nearest(body)

    def joined(self, entry: Entry, place: int = 0) -> tuple[tuple[str, Fields] | Misfit, list[Written]]:
        """Read the line that an entry ends; what it begins is kept for the next entry of its stream.

        Return what the entry is read as, and the lines of which no further part will come: the joined line; or, if the
        entry is a request by itself, the line that never ended and the entry; or, if neither is, the joined line and
        the entry.
        """
        begun, alone = self.begun.pop(entry.stream, Written("", ())), Written(entry.text, (place,))
        whole = Written(begun.text + entry.text, begun.places + alone.places)
        if not entry.ends:
            is_long = len(whole.text) > MAX_BYTES
            self.begun[entry.stream] = alone if is_long else whole
            return (COMMENT, {"time": entry.time}), [begun] * is_long
        request = self._whole(whole.text)
        if not begun.places:
            return request, [whole]
        by_itself = self._whole(entry.text)
        asked, by_end = self._asked(request), self._asked(by_itself)
        # The end of a line that was cut before or within its address looks like a line, too.
        if by_end and not (asked[1:] == by_end[1:] and is_end_of(asked[0], by_end[0])):
            return by_itself, [begun, alone]
        return request, [whole] if asked else [whole, alone]

    def _asked(self, read: tuple[str, Fields] | Misfit) -> list[str]:
        """Return the fields of :data:`REQUIRED`; none if a line is no request."""
        fields = {} if isinstance(read, Misfit) else read[1]
        is_one = fields.get("address", "-") != "-" and time_of(fields["time"], self._formats.zone) is not None
        return [fields[name] for name in REQUIRED] if is_one else []

    def _whole(self, text: str) -> tuple[str, Fields] | Misfit:
        whole = recoded(text)
        return Misfit(format="combined", field="encoding") if whole is None else self.read(whole, within=True)

    def begin(self, header: str) -> None:
        """Read the lines below by a `#Fields` line."""
        self.header = header
        columns = columns_of(header)
        declared = [reader for reader in self._formats.declared if isinstance(reader, ColumnFormat)]
        is_own = any(reader.all_columns == columns for reader in declared)
        of_log = compile_columns(OWN if is_own else "cloudfront" if EDGE in columns else "iis", header)
        # Several logs may be in one file: a line of text is none of columns. A header that lacks a field reads no
        # line, and is what columns are declared for.
        stays = [
            reader
            for reader in self._formats.readers
            if isinstance(reader, TextFormats)
            or (of_log.lacks is not None and reader.name == OWN and len(reader.all_columns) == len(columns))
        ]
        self._readers = (of_log, *stays)

    def users(self, line: str) -> list[str]:
        """Return what a line has for the user by each format that is declared, and by the header above it."""
        bare = bare_line(line)
        formats = (log_format for reader in self._readers for log_format in reader.formats)
        known = [log_format for log_format in formats if log_format.name == OWN or self.header]
        return [log_format.user(body) for log_format in known for body in {bare, body_of(bare)}]

    def hour_of(self, line: bytes) -> str | None:
        """Read the UTC hour in which a line was logged, such as `2026-01-31T05`; None if it has no readable time.

        Where the time is in brackets, only the beginning of a line is read: it may be truncated behind its time.
        """
        text, zone = line.decode(errors="replace"), self._formats.zone
        entry = entry_of(text)
        stamp = None if entry else _BRACKETED.match(body_of(bare_line(text)))
        time = _stamp(stamp[1], None) if stamp else None
        if time is None:
            read = self.joined(entry)[0] if entry else self.read(text)
            if isinstance(read, tuple):
                time = time_of(read[1]["time"], zone) if read[1] else None
            elif entry:
                time = time_of(entry.time)
        # The hour of the time in ISO 8601.
        return time.isoformat()[:13] if time else None

    def _object(self, body: str) -> tuple[str, Fields] | Misfit:
        document = document_in(body)
        if document is None:
            return Misfit(format="nginx_json", field="object")
        best, nearest = -1, Misfit(format="", field="")
        for log_format in self._formats.objects:
            fields = log_format.read(document)
            lacking = [field for field in REQUIRED if not fields.get(field)]
            if not lacking:
                # Half of a surrogate pair has no UTF-8.
                return log_format.name, {name: text.encode(errors="replace").decode() for name, text in fields.items()}
            if len(REQUIRED) - len(lacking) > best:
                best, nearest = len(REQUIRED) - len(lacking), Misfit(format=log_format.name, field=lacking[0])
        return nearest

    def _nearest(self, body: str) -> Misfit:
        formats = (log_format for reader in self._readers for log_format in reader.formats)
        misfits = [(*log_format.misfit(body), log_format.name) for log_format in formats]
        # Of formats with the same beginning the first one, which is the most common one.
        fits, _, field, name = max(misfits, key=lambda misfit: (misfit[0], misfit[3] not in _RARE, misfit[1]))
        return Misfit(format=name, field=field) if fits else Misfit(format="combined", field="address")


def time_of(text: str, zone: tzinfo | None = None) -> datetime | None:
    """Parse the time of a line: a stamp such as `17/May/2015:10:05:03 +0545`, ISO 8601, or seconds since 1970, also in
    thousands, millions or billions of them, by the number of digits.

    None for what is no instant: a stamp without an offset is one in a zone, and there the first one of an hour that is
    twice. A leap second (`23:59:60`) counts as the second before: it stays in its hour.
    """
    if "/" in text:
        return _stamp(text, zone) if len(text) <= _LONGEST_STAMP else None
    if _SINCE_1970.fullmatch(text):
        whole, _, fraction = text.partition(".")
        point = 9 + len(whole) % 3
        fraction = (whole[point:] + fraction)[:6].ljust(6, "0")
        return _EPOCH + timedelta(seconds=int(whole[:point]), microseconds=int(fraction))
    return iso_time(text)


@lru_cache(maxsize=4096)
def _stamp(text: str, zone: tzinfo | None) -> datetime | None:
    """Cached, as the lines of a second share it."""
    if not (match := _STAMP.fullmatch(text)):
        return None
    day, month, year, hour, minute, second, fraction, sign, hours, minutes = match.groups()
    if sign is None and zone is None:
        return None
    offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    try:
        local = datetime(
            int(year),
            _MONTHS.get(month, 0),
            int(day),
            int(hour),
            int(minute),
            min(int(second), 59),
            int(fraction.ljust(6, "0")) if fraction else 0,
            tzinfo=timezone.utc if sign else zone,
        )
        instant = local + offset if sign == "-" else local - offset if sign else local.astimezone(timezone.utc)
    except (ValueError, OverflowError):
        return None
    return instant if offset <= _FARTHEST and instant.year >= 1000 else None


@cache
def formats(declared: tuple[str, ...] = (), zone: str = "UTC") -> LogFormats:
    """Compile the formats that a deployment reads."""
    texts = [declaration_in(text) for text in declared]
    of_own = [compile_text(OWN, text, is_declared=True) for text in texts if not text.startswith("{")]
    named = [compile_text(name, declaration) for name, declaration in TEXTS.items()]
    readers = tuple(TextFormats([text]) if isinstance(text, TextFormat) else text for text in of_own)
    of_text = TextFormats([text for text in named if isinstance(text, TextFormat)])
    objects = (compile_object(OWN, text) for text in texts if text.startswith("{"))
    return LogFormats(
        declared=readers,
        readers=(*readers, of_text, *(columns for columns in named if isinstance(columns, ColumnFormat))),
        objects=(*objects, *map(_of_paths, OBJECTS)),
        zone=ZoneInfo(zone),
    )


def _of_paths(name: str) -> JsonFormat:
    places = {field: paths.split("|") for field, _, paths in (part.partition("=") for part in OBJECTS[name].split())}
    paths = {
        field: tuple(tuple(int(key) if key.isdecimal() else key for key in path.split(".")) for path in of_field)
        for field, of_field in places.items()
    }
    return JsonFormat(name=name, paths=paths)
