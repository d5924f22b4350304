"""The expected rows of every dataset, by their distinguishing columns, in plain Python from the landed files."""

from __future__ import annotations

import ipaddress
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import iptocc

import oracle
from lineage import brute_force
from lineage.brute_force import Lines, Session
from lineage.deployment import Deployment

Row = tuple[Any, ...]
Rule = tuple[str, Callable[[Path, Lines], Any]]
"""The columns that tell rows apart, and what these must be."""
HOURS = "hours_present"
Group = tuple[str, str]
COUNTS = f"events visits users {HOURS}"
UNKNOWN = "unknown"
CUBE = "device_type browser referral_host country"


@dataclass(frozen=True, kw_only=True)
class Version:
    """A user's values during consecutive deliveries."""

    user: str
    valid_from: datetime
    valid_to: datetime | None
    snapshots: int

    def holds(self, time: datetime) -> bool:
        """Tell whether the version is valid at a time."""
        return self.valid_from <= time and (self.valid_to is None or time < self.valid_to)


def of(landing: Path, *datasets: str) -> dict[str, Counter[Row]]:
    """Compute the expected rows by dataset; of those named, or of all whose rules are implemented here.

    The landing zone has plain JSON files, with users and devices; only the newest day of devices was ever loaded.
    """
    lines = brute_force.read(landing)
    return {name: Counter(RULES[name][1](landing, lines)) for name in datasets or RULES}


def found(deployment: Deployment, dataset: str) -> Counter[Row]:
    """Read the same columns of the table; lists become tuples, the reasons in order."""
    columns = RULES[dataset][0].split()

    def cell(name: str, value: Any) -> Any:
        return tuple(sorted(value) if name == "reasons" else value) if isinstance(value, list) else value

    return Counter(tuple(map(cell, columns, row)) for row in deployment.rows(dataset, *columns))


def _bronze_users(landing: Path, lines: Lines) -> Iterator[Row]:
    for folder in sorted((landing / "users").glob("date=*")):
        for file in folder.glob("*.json"):
            yield from ((folder.name[5:], raw) for raw in file.read_bytes().splitlines())


def _versions(landing: Path) -> dict[str, list[Version]]:
    days = brute_force.users(landing)
    following = dict(zip(days, [*list(days)[1:], None], strict=True))
    found: dict[str, list[Version]] = {}
    for user in {user for rows in days.values() for user in rows}:
        runs: list[list[str]] = []
        for day, rows in days.items():
            if user not in rows:
                continue
            last = runs[-1][-1] if runs else None
            if last is None or following[last] != day or _tracked(days[last][user]) != _tracked(rows[user]):
                runs.append([])
            runs[-1].append(day)
        found[user] = [_version(user, run, days, following) for run in runs]
    return found


def _tracked(row: dict[str, Any]) -> tuple[Any, ...]:
    return row.get("login"), row.get("email"), _registered(row)


def _registered(row: dict[str, Any]) -> datetime | None:
    return oracle.iso_time(row.get("registered_datetime") or "")


def _version(user: str, run: list[str], days: dict[str, Any], following: dict[str, str | None]) -> Version:
    since = brute_force.midnight(run[0])
    registered = _registered(days[run[0]][user])
    until = following[run[-1]]
    return Version(
        user=user,
        # Before the first delivery there is no earlier version.
        valid_from=min(since, registered or since) if run[0] == min(days) else since,
        valid_to=brute_force.midnight(until) if until else None,
        snapshots=len(run),
    )


def _silver_users(landing: Path, lines: Lines) -> Iterator[Row]:
    for versions in _versions(landing).values():
        yield from ((version.user, version.valid_from, version.valid_to, version.snapshots) for version in versions)


def _bronze_devices(landing: Path, lines: Lines) -> Iterator[Row]:
    # The header is a line as well, and is rejected.
    yield None, None
    yield from brute_force.devices(landing).elements()


def _silver_devices(landing: Path, lines: Lines) -> Iterator[Row]:
    # The first loaded delivery is valid from the beginning.
    day = brute_force.devices_of(landing)
    yield from ((*device, times, day, None, None) for device, times in brute_force.devices(landing).items())


def _late(landing: Path, lines: Lines) -> Iterator[Row]:
    newest: datetime | None = None
    for hour, _ in oracle.arrival_folders(landing):
        events = [line for line in lines.all if line.arrival_hour == hour and line.verdict.time is not None]
        times = [line.verdict.time for line in events if line.verdict.time is not None]
        for line, time in zip(events, times, strict=True):
            if newest is not None and time < newest - timedelta(minutes=15):
                yield hour, *line.place
        newest = max([*times, newest] if newest else times, default=newest)


def _enriched(landing: Path, lines: Lines) -> Iterator[Row]:
    versions, devices = _versions(landing), brute_force.devices(landing)
    for line in lines.winners.values():
        event, time = json.loads(line.raw), line.verdict.time
        assert time is not None
        users: list[datetime | None] = [
            version.valid_from for version in versions.get(event["user_id"], ()) if version.holds(time)
        ]
        device = tuple(brute_force.text(event, "technical", name) for name in ("device_type", "device_version"))
        yield event["visit_id"], time, event["page"], *(users or [None]), device in devices, *place(event)


def place(event: dict[str, Any]) -> Row:
    address = brute_force.text(event, "user", "ip")
    if address is None:
        return None, None
    return _place_of(address)


def cube(event: dict[str, Any]) -> tuple[str, str, str, str]:
    device, browser = (brute_force.text(event, "technical", name) for name in ("device_type", "browser"))
    return device or UNKNOWN, browser or UNKNOWN, brute_force.host(event), place(event)[0] or UNKNOWN


def _place_of(address: str) -> Row:
    """Return the country and the outcome of an address, from the embedded table only."""
    try:
        if not ipaddress.ip_address(address).is_global:
            return None, "reserved"
    except ValueError:
        return None, "reserved"
    country = iptocc.country_code(address)
    return country, "found" if country else "unknown"


def _places(landing: Path, lines: Lines) -> Iterator[Row]:
    events = [json.loads(line.raw) for line in lines.winners.values()]
    addresses = {brute_force.text(event, "user", "ip") for event in events}
    yield from ((address, *_place_of(address)) for address in addresses if address is not None)


def _silver_visits(landing: Path, lines: Lines) -> Iterator[Row]:
    for identity, line in lines.winners.items():
        yield *line.place, 1 + len(lines.losers.get(identity, ()))


def _audience(landing: Path, lines: Lines) -> Iterator[Row]:
    dimensions = {
        "all": lambda event: "all",
        "page": lambda event: event["page"] or UNKNOWN,
        "referral_host": brute_force.host,
        "device_type": lambda event: cube(event)[0],
        "country": lambda event: cube(event)[3],
    }
    for dimension, value in dimensions.items():
        found = brute_force.groups(lines, lambda time, event, value=value: (f"{time:%Y-%m-%dT%H}", value(event)))
        yield from ((hour, dimension, name, counts[0]) for (hour, name), counts in found.items())


def _daily_report(landing: Path, lines: Lines) -> Iterator[Row]:
    ads = brute_force.read(landing, "ads")
    counts = ("views", "visits", "visitors")
    found: dict[str, dict[str, Row]] = {}
    for (day,), views in brute_force.groups(lines, lambda time, event: (brute_force.day(time),)).items():
        found.setdefault(day, {}).update({name: (value, None) for name, value in zip(counts, views, strict=True)})
    for metric, of in (("top_page", lambda event: event["page"]), ("top_referrer", brute_force.host)):
        groups = brute_force.groups(lines, lambda time, event, of=of: (brute_force.day(time), of(event)))
        for day in {day for day, _ in groups}:
            least = min((-count[0], name) for (of_day, name), count in groups.items() if of_day == day)
            found.setdefault(day, {})[metric] = (-least[0], least[1])
    for metric, days in (
        ("dead_letters", [line.arrival_hour[:10] for line in lines.dead]),
        ("ad_displays", [str(line.event_hour)[:10] for line in ads.winners.values()]),
    ):
        for day, count in Counter(days).items():
            found.setdefault(day, {})[metric] = (count, None)
    for metrics, delivered, published in (
        ((*counts, "top_page", "top_referrer"), brute_force.delivered(landing), lines.winners.values()),
        (("dead_letters",), brute_force.delivered(landing), ()),
        (("ad_displays",), brute_force.delivered(landing, "ads"), ads.winners.values()),
    ):
        present = {*delivered, *(str(line.event_hour) for line in published)}
        all_days = {*found, *(hour[:10] for hour in brute_force.delivered(landing))}
        for day in all_days:
            read = any(hour[:10] == day for hour in present)
            if not read and not (delivered and min(delivered)[:10] <= day):
                continue
            hours = sum(hour[:10] == day for hour in delivered)
            for metric in metrics:
                nothing = 0 if read and not metric.startswith("top_") else None
                yield day, metric, *found.get(day, {}).get(metric, (nothing, None)), hours


SESSION = "user_id started_at ended_at pages entry_page exit_page keep_private"


def _of_session(session: Session) -> Row:
    pages = session.pages
    return session.user, session.started, session.ended, len(pages), pages[0], pages[-1], session.private


def _all_sessions(landing: Path, lines: Lines) -> list[Session]:
    hours = {*brute_force.delivered(landing), *(line.event_hour for line in lines.winners.values())}
    return brute_force.sessions(lines, until=max(hours, default=""))


def _sessions(landing: Path, lines: Lines) -> Iterator[Row]:
    for session in _all_sessions(landing, lines):
        yield session.hour, session.completed, *_of_session(session), session.pages[:5], session.new


def _pending(landing: Path, lines: Lines) -> Iterator[Row]:
    for session in _all_sessions(landing, lines):
        if not session.completed:
            yield session.hour, *_of_session(session), session.pages[:5]


def _daily_sessions(landing: Path, lines: Lines) -> Iterator[Row]:
    delivered = Counter(hour[:10] for hour in brute_force.delivered(landing))
    for session in _all_sessions(landing, lines):
        if session.completed:
            day, pages = session.hour[:10], session.pages
            yield day, *_of_session(session)[1:], " > ".join(pages[:5]), len(pages) == 1, delivered[day]


def _counted(
    period: Callable[[datetime], str], key: Callable[[dict[str, Any]], Row]
) -> Callable[[Path, Lines], Iterator[Row]]:
    def rows(landing: Path, lines: Lines) -> Iterator[Row]:
        hours = Counter(period(brute_force.hour(hour)) for hour in brute_force.delivered(landing))
        groups = brute_force.groups(lines, lambda time, event: (period(time), *key(event)))
        yield from ((*group, *counts, hours[group[0]]) for group, counts in groups.items())

    return rows


def _bronze_ads(landing: Path, lines: Lines) -> Iterator[Row]:
    return ((line.arrival_hour, *line.place, line.raw) for line in brute_force.read(landing, "ads").all)


def _ad_dead_letters(landing: Path, lines: Lines) -> Iterator[Row]:
    return ((*line.place, line.raw, brute_force.reasons(line)) for line in brute_force.read(landing, "ads").dead)


def _silver_ads(landing: Path, lines: Lines) -> Iterator[Row]:
    ads = brute_force.read(landing, "ads")
    for identity, line in ads.winners.items():
        yield line.event_hour, *line.place, line.raw, 1 + len(ads.losers.get(identity, ()))


def _ad_conflicts(landing: Path, lines: Lines) -> Iterator[Row]:
    return ((*line.place, line.raw) for line in brute_force.read(landing, "ads").conflicts)


def _with_ads(landing: Path, lines: Lines) -> Iterator[Row]:
    for pair in brute_force.pairs(lines, brute_force.read(landing, "ads")):
        line = pair.event or pair.display or {}
        page, campaign = (pair.event or {}).get("page"), (pair.display or {}).get("campaign")
        yield pair.hour, pair.side, line["visit_id"], pair.event_time, page, pair.display_time, campaign


def _campaigns(landing: Path, lines: Lines) -> Iterator[Row]:
    """Count the sides of pairs, the displays, and the distinct values, by day and campaign."""
    ads = brute_force.read(landing, "ads")
    delivered = {*brute_force.delivered(landing)} & {*brute_force.delivered(landing, "ads")}
    hours = Counter(brute_force.day(brute_force.hour(hour)) for hour in delivered)
    counts: dict[Group, Counter[str]] = defaultdict(Counter)
    distinct: dict[Group, dict[str, set[Any]]] = defaultdict(lambda: defaultdict(set))
    for pair in brute_force.pairs(lines, ads):
        group = pair.hour[: len("2026-01-05")], (pair.display or {}).get("campaign") or "unknown"
        counts[group][pair.side] += 1
        if pair.side == "both" and pair.event is not None:
            identity = (pair.event["visit_id"], pair.event_time, pair.event["page"])
            for name, value in zip(
                ("events", "visits", "visitors"), (identity, identity[0], pair.event["user_id"]), strict=True
            ):
                distinct[group][name].add(value)
    for line in ads.winners.values():
        assert line.verdict.time is not None
        counts[brute_force.day(line.verdict.time), json.loads(line.raw)["campaign"] or "unknown"]["displays"] += 1
    for group, found in counts.items():
        sizes = (len(distinct[group][name]) for name in ("events", "visits", "visitors"))
        plain = (found[name] for name in ("displays", "display", "event", "both"))
        yield *group, *plain, *sizes, hours[group[0]]


AD_RULES: dict[str, Rule] = {
    "bronze.ads": ("arrival_hour source_file source_offset raw", _bronze_ads),
    "bronze.ad_dead_letters": ("source_file source_offset raw reasons", _ad_dead_letters),
    "silver.ads": ("display_hour source_file source_offset raw occurrences", _silver_ads),
    "silver.ad_conflicts": ("source_file source_offset raw", _ad_conflicts),
    "silver.visits_with_ads": ("event_hour side visit_id event_time page display_time campaign", _with_ads),
    "gold.campaign_stats": (
        f"event_date campaign displays displays_alone events_alone pairs events visits visitors {HOURS}",
        _campaigns,
    ),
}
RULES: dict[str, Rule] = {
    "bronze.users": ("load_date raw", _bronze_users),
    "bronze.devices": ("type version", _bronze_devices),
    "silver.users": ("user_id valid_from valid_to snapshots", _silver_users),
    "silver.devices": ("device_type device_version occurrences changed_on valid_from valid_to", _silver_devices),
    "bronze.visits": (
        "arrival_hour source_file source_offset raw",
        lambda landing, lines: ((line.arrival_hour, *line.place, line.raw) for line in lines.all),
    ),
    "bronze.dead_letters": (
        "source_file source_offset raw reasons",
        lambda landing, lines: ((*line.place, line.raw, brute_force.reasons(line)) for line in lines.dead),
    ),
    **AD_RULES,
    "silver.late_visits": ("arrival_hour source_file source_offset", _late),
    "silver.visits": ("source_file source_offset occurrences", _silver_visits),
    "silver.visit_conflicts": (
        "source_file source_offset raw",
        lambda landing, lines: ((*line.place, line.raw) for line in lines.conflicts),
    ),
    "silver.visits_enriched": (
        "visit_id event_time page user_version_from device_known country place_outcome",
        _enriched,
    ),
    "silver.places": ("ip country outcome", _places),
    "gold.visits_cube_daily": (f"event_date {CUBE} {COUNTS}", _counted(brute_force.day, cube)),
    "gold.visits_cube_weekly": (f"event_week {CUBE} {COUNTS}", _counted(brute_force.week, cube)),
    "gold.page_stats": (f"event_date page {COUNTS}", _counted(brute_force.day, lambda event: (event["page"],))),
    "gold.referral_stats": (
        f"event_date referral_host {COUNTS}",
        _counted(brute_force.day, lambda event: (brute_force.host(event),)),
    ),
    "gold.audience_hourly": ("event_hour dimension value events", _audience),
    "silver.sessions": (f"event_hour is_completed {SESSION} first_pages new_pages", _sessions),
    "silver.sessions_pending": (f"event_hour {SESSION} first_pages", _pending),
    "gold.sessions_daily": (
        f"event_date {SESSION.removeprefix('user_id ')} path bounced {HOURS}",
        _daily_sessions,
    ),
    "gold.daily_report": (f"event_date metric value detail {HOURS}", _daily_report),
}
