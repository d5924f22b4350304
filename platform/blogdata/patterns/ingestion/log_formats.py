"""The formats of access logs: those that have a name, and those that a deployment declares.

A format is the string that the server's own configuration has (:mod:`.log_declarations`), the `#Fields` line of a log
in columns (:mod:`.log_columns`), or where the fields are in an object (:mod:`.json_logs`). Each line is read by the
first format that it fits. A further text format is a further line of :data:`DECLARED`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from urllib.parse import unquote

from blogdata.patterns.ingestion import json_logs, log_columns
from blogdata.patterns.ingestion.json_logs import JsonFormat, compile_json
from blogdata.patterns.ingestion.log_columns import HEADER, compile_columns, reads_columns
from blogdata.patterns.ingestion.log_declarations import (
    CAPTURED,
    OPTIONAL,
    PIECES,
    PREFIX,
    LogFormat,
    compile_format,
    in_python,
)
from blogdata.patterns.ingestion.log_directives import declaration_in

_COMBINED = '%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-Agent}i"'
_NGINX = (
    '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent"'
)
_USUAL = {
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
_RARE = {
    "traefik": f'{_NGINX} $number "$router" "$server" ${{request_time}}ms',
    "ingress_nginx": f"{_NGINX} $request_length $request_time [$proxy_upstream_name] [$alternative_name]"
    " $upstream_addr $upstream_response_length $upstream_response_time $upstream_status $req_id",
    "alb": "$type $time_iso8601 $load_balancer $remote_addr:$remote_port $target_and_port $request_seconds"
    ' $target_seconds $response_seconds $status $target_status $bytes_received $bytes_sent "$request"'
    ' "$http_user_agent" $rest',
    "s3": '$owner $bucket [$time_local] $remote_addr $requester $request_id $operation $key "$request" $status $error'
    ' $bytes_sent $object_size $total_time $turn_around_time "$http_referer" "$http_user_agent" $rest',
    **log_columns.DECLARED,
}
DECLARED = {**_USUAL, **_RARE}
"""The named formats of text; `$request_time` and `%D` are both a number."""
OWN = "declared"
"""The name of every format that the deployment declares."""
COMMENT = "comment"
"""The name of the format of lines that tell about a log, such as `#Fields: date time`."""
UNKNOWN = "log"
"""The name where a line fits no format."""
COMMENTS = r"^#[A-Z][A-Za-z-]*: "
_MARK = "\ufeff"
_PREFIX = re.compile(in_python(f"^{PREFIX}"), re.ASCII)
OBJECT = "object"
"""What is wrong with a line that begins like a JSON object, but is none."""
REQUIRED = ("address", "time", "request", "status")
NAMES = (*DECLARED, *(one.name for one in json_logs.NAMED))


@dataclass(frozen=True, kw_only=True)
class Misfit:
    """Where a line that fits no format departs from the nearest one.

    Args:
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


@dataclass(frozen=True, kw_only=True)
class LogFormats:
    """The formats that lines are read by, in the order in which they are tried.

    Args:
        rare: Those that are tried for a line that fits none of these.
    """

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
        return (*ordered, Misfit(pattern="", format="combined", field="address"))

    def format_of(self, line: str) -> str | None:
        """Return the name of the first format that a line fits, None if it fits none."""
        found = self._found(line)
        return found[0] if found else None

    def read(self, line: str) -> dict[str, str] | None:
        """Read the fields of a line by the first format that it fits, None if it fits none."""
        found = self._found(line)
        return found[1] if found else None

    def misfit_of(self, line: str) -> Misfit:
        """Return where a line that fits no format departs from the nearest one."""
        line = _bare(line)
        if not _body(line).startswith("{"):
            return next(one for one in self.misfits if re.match(in_python(one.pattern), line, re.ASCII))
        document = _object_of(_body(line))
        if document is None:
            return Misfit(pattern="", format=self.objects[-1].name, field=OBJECT)
        reads = [(_whole(one.read(document)), one.name) for one in self.objects]
        fields, name = max(reads, key=lambda each: sum(bool(each[0].get(field)) for field in REQUIRED))
        return Misfit(pattern="", format=name, field=next(field for field in REQUIRED if not fields.get(field)))

    def has_columns(self, header: str) -> bool:
        """Whether some format reads lines with the columns of a `#Fields` line."""
        return any(reads_columns(one, header) for one in self.headers)

    def _found(self, line: str) -> tuple[str, dict[str, str]] | None:
        line = _bare(line)
        body = _body(line)
        if re.match(COMMENTS, body):
            return COMMENT, {}
        if body.startswith("{"):
            document = _object_of(body)
            reads = [] if document is None else [(one.name, _whole(one.read(document))) for one in self.objects]
            return next((read for read in reads if all(read[1].get(field) for field in REQUIRED)), None)
        for one, pattern in self._patterns:
            if found := pattern.fullmatch(line):
                captured = {name: text for name, text in zip(one.groups, found.groups(), strict=True) if text}
                return one.name, _whole(captured, one.coding)
        return None

    @cached_property
    def _patterns(self) -> list[tuple[LogFormat, re.Pattern[str]]]:
        return [(one, re.compile(in_python(one.line) + r"\s*", re.ASCII)) for one in self.texts]


@cache
def any_line(formats: tuple[LogFormat, ...]) -> tuple[str, dict[str, tuple[int, ...]]]:
    """Build the expression for a line of any of these formats, with the numbers of the groups of each captured field.

    At most one of the groups of a field takes part in a match; all others are empty.
    """
    groups = [field for one in formats for field in one.groups]
    numbers = {name: tuple(at for at, field in enumerate(groups, start=1) if field == name) for name in CAPTURED}
    return f"(?:{'|'.join(one.line for one in formats)})", numbers


@cache
def formats(declared: tuple[str, ...] = ()) -> LogFormats:
    """Compile the formats that a deployment reads.

    Raises:
        LogFormatUnusable: A declaration cannot be compiled.
    """
    declared = tuple(declaration_in(one) for one in declared)
    own = [_compiled(OWN, one) for one in declared]
    return LogFormats(
        usual=(*(one for one in own if isinstance(one, LogFormat)), *_named(_USUAL)),
        rare=_named(_RARE),
        objects=(*(one for one in own if isinstance(one, JsonFormat)), *json_logs.NAMED),
        headers=(*log_columns.DECLARED.values(), *(one for one in declared if one.startswith(HEADER))),
    )


def _named(declarations: Mapping[str, str]) -> tuple[LogFormat, ...]:
    compiled = [_compiled(name, declaration) for name, declaration in declarations.items()]
    return tuple(one for one in compiled if isinstance(one, LogFormat))


def _compiled(name: str, declaration: str) -> LogFormat | JsonFormat:
    if declaration.startswith(HEADER):
        return compile_columns(name, declaration)
    if declaration.startswith("{"):
        return compile_json(name, declaration)
    return compile_format(name, declaration, declared=name == OWN)


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


def _object_of(line: str) -> object | None:
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None
