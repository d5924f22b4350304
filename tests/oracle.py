"""Counts a landing zone line by line in plain Python, sharing no code with the platform.

It reads the landed files with the json module and regular expressions, so it is slow and easy to check.
Decisions where the rules leave a choice: white space around a line's JSON is no fault; NaN and Infinity are not JSON; a
string with half a surrogate pair has no UTF-8 form and is of the wrong type; of a key that occurs twice the last value
counts; an identifier of nothing but spaces is missing; a log line that parses but whose request is no `METHOD path
PROTOCOL` is removed by the filter `method`.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from ipaddress import IPv6Address, ip_address
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeGuard

from oracle_logs import filter_of, log_time, parts_of, request_of

LARGEST = 1_048_576
LATENESS = timedelta(minutes=15)
SILENCE = timedelta(minutes=30)
EARLIEST = datetime(2000, 1, 1, tzinfo=timezone.utc)
REQUIRED = ("visit_id", "event_time", "user_id", "page")
IDENTIFIERS = ("visit_id", "user_id")
OPTIONAL = {
    "": ("referral", "ad_id"),
    "user.": ("ip", "login", "connected_since"),
    "technical.": ("browser", "browser_version", "network_type", "device_type", "device_version"),
}
"""Texts in the context of an event, by the object that they are in."""
DISPLAY_REQUIRED = ("ad_id", "page", "visit_id", "display_time", "campaign")
DISPLAY_IDENTIFIERS = ("ad_id", "visit_id")

_ISO = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d)(?:[.,](\d+))?)?(?:(Z)|([+-])(\d\d)(?::?([0-5]\d))?)",
    re.ASCII,
)


@dataclass
class Arrival:
    """Counts of one arrival hour: `valid` are rows without a reason, `events` are rows that no filter removes."""

    arrival_hour: str
    lines: int = 0
    bytes: int = 0
    valid: int = 0
    events: int = 0
    dead: int = 0
    late: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    filtered: Counter[str] = field(default_factory=Counter)
    by_event_hour: Counter[str] = field(default_factory=Counter)


@dataclass
class Events:
    event_hour: str
    valid: int = 0
    unique: int = 0
    duplicates: int = 0
    conflicts: int = 0


@dataclass
class OracleTruth:
    """Counts of a landing zone: by arrival hour, by event hour, and visits found in access logs."""

    arrivals: dict[str, Arrival] = field(default_factory=dict)
    event_hours: dict[str, Events] = field(default_factory=dict)
    log_visits: int = 0

    def reasons(self) -> Counter[str]:
        return sum((arrival.reasons for arrival in self.arrivals.values()), Counter())

    def filtered(self) -> Counter[str]:
        return sum((arrival.filtered for arrival in self.arrivals.values()), Counter())


@dataclass(frozen=True)
class Verdict:
    reasons: tuple[str, ...] = ()
    filtered_by: str | None = None
    time: datetime | None = None
    identity: tuple[str, ...] = ()
    client: tuple[str, str] | None = None


def count(landing: Path, table: str = "visits") -> OracleTruth:
    """Count all lines under landing/visits, or under another table, in the order of arrival."""
    truth = OracleTruth()
    winners: dict[tuple[Any, ...], bytes] = {}
    clients: dict[tuple[str, str], list[datetime]] = defaultdict(list)
    newest: datetime | None = None
    for hour, folder in arrival_folders(landing, table):
        arrival = truth.arrivals[hour] = Arrival(hour)
        times = []
        landed = [*lines_of(folder)]
        of_logs = iter(judge_logs([raw for raw, log in landed if log], hour))
        for raw, log in landed:
            arrival.lines += 1
            arrival.bytes += len(raw) + 1
            verdict = next(of_logs) if log else JUDGES[table](raw, hour)
            if verdict.reasons:
                arrival.dead += 1
                arrival.reasons.update(verdict.reasons)
                continue
            arrival.valid += 1
            if verdict.filtered_by:
                arrival.filtered[verdict.filtered_by] += 1
                continue
            assert verdict.time is not None
            arrival.events += 1
            times.append(verdict.time)
            arrival.late += newest is not None and verdict.time < newest - LATENESS
            key = verdict.time.strftime("%Y-%m-%dT%H")
            arrival.by_event_hour[key] += 1
            events = truth.event_hours.setdefault(key, Events(key))
            events.valid += 1
            identity, digest = (verdict.time, *verdict.identity), hashlib.sha256(raw).digest()
            if identity in winners:
                events.duplicates += 1
                events.conflicts += winners[identity] != digest
            else:
                winners[identity] = digest
                events.unique += 1
            if verdict.client:
                clients[verdict.client].append(verdict.time)
        newest = max([*times, newest] if newest else times, default=newest)
    truth.log_visits = sum(visits(times) for times in clients.values())
    return truth


def arrival_folders(landing: Path, table: str = "visits") -> Iterator[tuple[str, Path]]:
    for folder in sorted((landing / table).glob("date=*/hour=*")):
        yield f"{folder.parent.name[5:]}T{folder.name[5:]}", folder


def lines_of(folder: Path) -> Iterator[tuple[bytes, bool]]:
    """List landed lines of a folder in order, without line feed; each with whether it is from an access log."""
    for path in sorted(folder.iterdir(), key=lambda file: file.name):
        if path.name[0] in "_.":
            continue
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        log = path.name.removesuffix(".gz").endswith(".log")
        lines = content.split(b"\n")
        for line in lines if lines[-1] else lines[:-1]:
            yield line, log


def visits(times: list[datetime]) -> int:
    """Count visits of one client: a new one begins after 30 minutes of silence."""
    ordered = sorted(times)
    return 1 + sum(later - earlier > SILENCE for earlier, later in pairwise(ordered))


def judge_json(raw: bytes, hour: str) -> Verdict:
    event = _object(raw)
    if isinstance(event, str):
        return Verdict(reasons=(event,))
    reasons = _field_problems(event, REQUIRED, IDENTIFIERS)
    if not isinstance(event.get("keep_private"), (bool, type(None))):
        reasons.append("wrong_type:keep_private")
    reasons += _context_problems(event)
    return _verdict(event, reasons, hour, "event_time", "page")


def judge_display(raw: bytes, hour: str) -> Verdict:
    display = _object(raw)
    if isinstance(display, str):
        return Verdict(reasons=(display,))
    reasons = _field_problems(display, DISPLAY_REQUIRED, DISPLAY_IDENTIFIERS)
    return _verdict(display, reasons, hour, "display_time", "ad_id")


def _verdict(line: dict[str, Any], reasons: list[str], hour: str, time_of: str, other: str) -> Verdict:
    """Judge the time of a line that has some reasons already; `other` identifies it within its visit."""
    time = iso_time(line[time_of]) if _is_text(line.get(time_of)) else None
    if _is_text(line.get(time_of)) and (time is None or impossible(time, hour)):
        reasons = [*reasons, "impossible_time" if time else f"invalid_time:{time_of}"]
    if reasons:
        return Verdict(reasons=tuple(reasons))
    return Verdict(time=time, identity=(line["visit_id"], line[other]))


JUDGES = {"visits": judge_json, "ads": judge_display}


def _field_problems(line: dict[str, Any], required: tuple[str, ...], identifiers: tuple[str, ...]) -> list[str]:
    reasons = []
    for name in required:
        if line.get(name) is None or (name in identifiers and _is_blank(line[name])):
            reasons.append(f"missing_field:{name}")
        elif not _is_text(line[name]):
            reasons.append(f"wrong_type:{name}")
    return reasons


def _text(raw: bytes) -> tuple[str, str | None]:
    if len(raw) > LARGEST:
        return "", "too_large"
    if not raw.strip():
        return "", "empty_line"
    try:
        return raw.decode("utf-8"), None
    except UnicodeDecodeError:
        return "", "not_utf8"


def _no_constant(name: str) -> None:
    raise ValueError(name)


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


def _object(raw: bytes) -> dict[str, Any] | str:
    """Return the single object of a line, or the reason why the line is invalid."""
    text, problem = _text(raw)
    if problem:
        return problem
    line = text.strip(" \t\r\n\f\v")
    try:
        value = _DECODER.decode(text)
        return value if isinstance(value, dict) else "not_json"
    except ValueError:
        pass
    except RecursionError:
        return "not_json"
    return "truncated" if line.startswith('{"') and not line.endswith("}") else "not_json"


def _is_blank(value: object) -> bool:
    return isinstance(value, str) and not value.strip(" ")


def _is_text(value: object) -> TypeGuard[str]:
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _context_problems(event: dict[str, Any]) -> list[str]:
    context = event.get("context")
    if context is None:
        return []
    if not isinstance(context, dict):
        return ["wrong_type:context"]
    wrong = []
    objects = {"": context, **{f"{name}.": context.get(name) for name in ("user", "technical")}}
    for above, part in objects.items():
        if not isinstance(part, (dict, type(None))):
            wrong.append(f"wrong_type:context.{above[:-1]}")
            continue
        values = {name: value for name in OPTIONAL[above] if (value := (part or {}).get(name)) is not None}
        wrong += [f"wrong_type:context.{above}{name}" for name, value in values.items() if not _is_text(value)]
        since = values.get("connected_since")
        if _is_text(since) and iso_time(since) is None:
            wrong.append("invalid_time:context.user.connected_since")
    return wrong


def iso_time(text: str) -> datetime | None:
    """Parse an ISO 8601 date-time with offset or Z, to the microsecond; None for anything else."""
    parts = _ISO.fullmatch(text)
    if not parts:
        return None
    year, month, day, hour, minute, second, fraction, _, sign, off_hours, off_minutes = parts.groups()
    offset = timedelta(hours=int(off_hours or 0), minutes=int(off_minutes or 0)) * (-1 if sign == "-" else 1)
    try:
        local = datetime(
            int(year), int(month), int(day), int(hour), int(minute), int(second or 0),
            int((fraction or "0")[:6].ljust(6, "0")), timezone.utc,
        )  # fmt: skip
        return local - offset if abs(offset) <= timedelta(hours=18) else None
    except (ValueError, OverflowError):
        return None


def impossible(time: datetime, hour: str) -> bool:
    """Tell whether a time is older than the web's logs, or too far after its own arrival."""
    arrival = datetime.strptime(hour, "%Y-%m-%dT%H").replace(tzinfo=timezone.utc)
    return time < EARLIEST or time > arrival + timedelta(hours=1, minutes=5)


def judge_logs(lines: list[bytes], hour: str, most_views: int = 1000) -> list[Verdict]:
    """Judge log lines of one arrival hour; clients that read /robots.txt or too many pages in it are crawlers."""
    verdicts = [judge_log(raw, hour) for raw in lines]
    views = Counter(verdict.client for verdict in verdicts if verdict.client and not verdict.filtered_by)
    acting = {verdict.client for verdict in verdicts if verdict.identity and verdict.identity[-1] == "/robots.txt"}
    acting |= {client for client, count in views.items() if count > most_views}
    return [
        replace(verdict, filtered_by="crawler") if not verdict.filtered_by and verdict.client in acting else verdict
        for verdict in verdicts
    ]


def judge_log(raw: bytes, hour: str) -> Verdict:
    text, problem = _text(raw)
    if problem:
        return Verdict(reasons=(problem,))
    fields = request_of(text)
    if isinstance(fields, str):
        return Verdict(reasons=(fields,))
    visitor, time = _client_of(fields["address"]), log_time(fields["time"][1:-1])
    if visitor is None or time is None:
        return Verdict(reasons=(f"not_{fields['format']}_log:{'time' if visitor else 'address'}",))
    if impossible(time, hour):
        return Verdict(reasons=("impossible_time",))
    method, path, query, _ = parts_of(fields["request"][2:-1])
    agent = fields["agent"][2:-1] if "agent" in fields else None
    removed = filter_of(method, int(fields["status"]), path, query, agent)
    client = (visitor, agent or "")
    return Verdict(filtered_by=removed, time=time, identity=(*client, path), client=client)


def _client_of(text: str) -> str | None:
    """Return a normalized address or a host name; None if a text is neither."""
    text = text.lower()
    with_port = re.fullmatch(r"(?:\[([^\[\]]*)\]|([^:]*))(?::[0-9]{1,5})?", text)
    bare = (with_port[1] or with_port[2] or "") if with_port else text
    try:
        address = ip_address(bare)
    except ValueError:
        return text if re.fullmatch(r"(?:[a-z0-9_-]+\.)*[a-z_][a-z0-9_-]*", text) else None
    return str(address.ipv4_mapped or address if isinstance(address, IPv6Address) else address)
