"""The expected rows of the lake, computed row by row in plain Python from the landed files."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import oracle
from oracle import Verdict

BELONGS = timedelta(minutes=30)


@dataclass(frozen=True)
class Line:
    arrival_hour: str
    file: str
    offset: int
    raw: bytes
    verdict: Verdict

    @property
    def event_hour(self) -> str:
        assert self.verdict.time is not None
        return self.verdict.time.strftime("%Y-%m-%dT%H")

    @property
    def place(self) -> tuple[str, int]:
        return self.file, self.offset


@dataclass
class Lines:
    all: list[Line] = field(default_factory=list)
    winners: dict[tuple[Any, ...], Line] = field(default_factory=dict)
    losers: dict[tuple[Any, ...], list[Line]] = field(default_factory=lambda: defaultdict(list))

    @property
    def dead(self) -> list[Line]:
        return [line for line in self.all if line.verdict.reasons]

    @property
    def conflicts(self) -> list[Line]:
        """Lines that lost to another payload of the same identity."""
        return [
            line for identity, lines in self.losers.items() for line in lines if line.raw != self.winners[identity].raw
        ]


def read(landing: Path, table: str = "visits") -> Lines:
    """Read a table of a landing zone of plain JSON files."""
    lines = Lines()
    for hour, folder in oracle.arrival_folders(landing, table):
        for file in sorted(folder.glob("[!_.]*.json")):
            offset = 0
            for raw in file.read_bytes().split(b"\n"):
                name = str(file.relative_to(landing))
                lines.all.append(Line(hour, name, offset, raw, oracle.JUDGES[table](raw, hour)))
                offset += len(raw) + 1
            assert lines.all.pop().raw == b"", f"{file} does not end with a line feed"
    for line in lines.all:
        identity = (line.verdict.time, *line.verdict.identity)
        if not line.verdict.reasons and lines.winners.setdefault(identity, line) is not line:
            lines.losers[identity].append(line)
    return lines


@dataclass(frozen=True, kw_only=True)
class Pair:
    """An event that names an ad and its display, or one of them without the other."""

    event: dict[str, Any] | None = None
    event_time: datetime | None = None
    display: dict[str, Any] | None = None
    display_time: datetime | None = None

    @property
    def side(self) -> str:
        return "display" if self.event is None else "event" if self.display is None else "both"

    @property
    def hour(self) -> str:
        time = self.event_time or self.display_time
        assert time is not None
        return time.strftime("%Y-%m-%dT%H")


def pairs(visits: Lines, ads: Lines) -> Iterator[Pair]:
    """Pair each event that names an ad with the displays of its visit and ad in the half hour before it."""
    displays: dict[tuple[str, str | None], list[tuple[datetime, dict[str, Any]]]] = defaultdict(list)
    for line in ads.winners.values():
        display = json.loads(line.raw)
        assert line.verdict.time is not None
        displays[display["visit_id"], display["ad_id"]].append((line.verdict.time, display))
    met: set[tuple[str, str | None, datetime]] = set()
    for line in visits.winners.values():
        event, time = json.loads(line.raw), line.verdict.time
        assert time is not None
        if (ad := text(event, "ad_id")) is None:
            continue
        near = [
            (at, display) for at, display in displays[event["visit_id"], ad] if timedelta(0) <= time - at <= BELONGS
        ]
        met.update((event["visit_id"], ad, at) for at, _ in near)
        for at, display in near:
            yield Pair(event=event, event_time=time, display=display, display_time=at)
        if not near:
            yield Pair(event=event, event_time=time)
    for key, timed in displays.items():
        yield from (Pair(display=display, display_time=at) for at, display in timed if (*key, at) not in met)


def delivered(landing: Path, table: str = "visits") -> list[str]:
    """List hours of arrival that are flagged as complete, with lines or without."""
    return [hour for hour, folder in oracle.arrival_folders(landing, table) if (folder / "_SUCCESS").exists()]


def groups(lines: Lines, by: Any) -> dict[tuple[Any, ...], tuple[int, int, int]]:
    """Count the winners by a function of time and event: events, visits and users."""
    events: dict[tuple[Any, ...], list[tuple[str, str]]] = defaultdict(list)
    for line in lines.winners.values():
        event = json.loads(line.raw)
        events[by(line.verdict.time, event)].append((event["visit_id"], event["user_id"]))
    return {key: (len(ids), len({v for v, _ in ids}), len({user for _, user in ids})) for key, ids in events.items()}


def text(event: dict[str, Any], *path: str) -> str | None:
    """Return a text in the context of a valid event, None if it is missing."""
    value: Any = event.get("context")
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    assert value is None or isinstance(value, str)
    return value


def host(event: dict[str, Any]) -> str:
    """Return the host a visitor came from."""
    referral = text(event, "referral")
    if not referral:
        return "direct"
    return urlsplit(referral if "://" in referral else f"//{referral}").hostname or "direct"


def devices(landing: Path) -> Counter[tuple[str, str]]:
    """Read the devices' newest landed delivery, the only one that is loaded, by type and version."""
    rows = Counter[tuple[str, str]]()
    for file in (landing / "devices" / f"date={devices_of(landing)}").glob("*.csv"):
        header, *lines = file.read_text(encoding="utf-8").splitlines()
        names = header.split(";")
        for line in lines:
            row = dict(zip(names, line.split(";"), strict=True))
            rows[row["type"], row["version"]] += 1
    return rows


def devices_of(landing: Path) -> str:
    """Return the day of the newest delivery of the devices, if any has landed."""
    return max((folder.name[5:] for folder in (landing / "devices").glob("date=*")), default="")


def users(landing: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """Read delivered users by day and identifier."""
    days = {}
    for folder in sorted((landing / "users").glob("date=*")):
        rows = [json.loads(line) for file in folder.glob("*.json") for line in file.read_bytes().splitlines()]
        days[folder.name[5:]] = {row["id"]: row for row in rows}
    return days


def midnight(day: str) -> datetime:
    return datetime.fromisoformat(f"{day}T00:00:00+00:00")


def hour(key: str) -> datetime:
    return midnight(key[:10]) + timedelta(hours=int(key[11:]))


def day(time: datetime) -> str:
    return time.date().isoformat()


def week(time: datetime) -> str:
    return (time.date() - timedelta(days=time.weekday())).isoformat()


def reasons(line: Line) -> tuple[str, ...]:
    """List the reasons why a line is a dead letter, in order."""
    return tuple(sorted(line.verdict.reasons))


@dataclass(frozen=True, kw_only=True)
class Session:
    hour: str
    completed: bool
    user: str
    started: datetime
    ended: datetime
    pages: tuple[str, ...]
    new: int
    first_arrived: tuple[str, str, int]
    private: bool


def sessions(lines: Lines, until: str, inactivity: timedelta = timedelta(minutes=30)) -> list[Session]:
    """List every session once for each hour at whose end it is open, and once for the hour in which it ends."""
    views = defaultdict(list)
    for line in lines.winners.values():
        event = json.loads(line.raw)
        assert line.verdict.time is not None
        arrived = (line.arrival_hour, line.file, line.offset)
        private = event.get("keep_private") is not False
        views[event["user_id"]].append((line.verdict.time, event["visit_id"], event["page"], arrived, private))
    hourly = []
    for user, rows in views.items():
        session: list[Any] = []
        for row in sorted(rows):
            if session and row[0] - session[-1][0] > inactivity:
                hourly += _by_hour(user, session, until, inactivity)
                session = []
            session.append(row)
        hourly += _by_hour(user, session, until, inactivity)
    return hourly


def _by_hour(user: str, rows: list[Any], until: str, inactivity: timedelta) -> list[Session]:
    found, hour = [], rows[0][0].replace(minute=0, second=0, microsecond=0)
    over = rows[-1][0] + inactivity
    while hour <= over and hour.strftime("%Y-%m-%dT%H") <= until:
        end = hour + timedelta(hours=1)
        seen = [row for row in rows if row[0] < end]
        found.append(
            Session(
                hour=hour.strftime("%Y-%m-%dT%H"),
                completed=over < end,
                user=user,
                started=seen[0][0],
                ended=seen[-1][0],
                pages=tuple(row[2] for row in seen),
                new=sum(row[0] >= hour for row in seen),
                first_arrived=min(row[3] for row in seen),
                private=any(row[4] for row in seen),
            )
        )
        hour = end
    return found
