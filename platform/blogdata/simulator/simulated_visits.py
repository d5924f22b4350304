"""Simulates the visits of one hour and the ads displayed in them, as columns of numbers and of JSON values.

The ad that a visit's events name was displayed shortly before the first of them, as a rule. Some displays are lost,
some are older than the half hour in which an event belongs to a display, some ads are displayed a second time, and most
displays are of ads that nobody clicked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from blogdata.simulator import text
from blogdata.simulator.population import BROWSERS, NETWORKS, Pools, Population, device, devices_known
from blogdata.simulator.spec import SimulationSpec
from blogdata.simulator.text import DAY_MS, HOUR_MS, FieldChange, Flags, Ints, Shape, Texts

_HOUR_WEIGHTS = np.array(
    [28, 20, 15, 12, 12, 16, 26, 42, 62, 76, 82, 80, 74, 78, 84, 86, 84, 80, 78, 82, 84, 76, 60, 42], float
)
_WEEKDAY_WEIGHTS = np.array([1.08, 1.14, 1.15, 1.12, 1.02, 0.72, 0.77])
_MEAN_PAGES = 4.0
_MOST_PAGES = 30
_LONGEST_GAP_MS = 29 * 60_000
_END_MARGIN_MS = 5_000
ZONES = (("Z", 0), ("+01:00", HOUR_MS), ("-05:00", -5 * HOUR_MS))
"""Time zones of the browsers: the suffix of a time, and the milliseconds it is ahead of UTC."""
_CONNECTED = 0.35
_ADDRESS = text.texts(str(n) for n in range(256))


CONTEXT = "context"
USER = "context.user"
TECHNICAL = "context.technical"
_TECHNICAL_FIELDS = ("browser", "browser_version", "network_type", "device_type", "device_version")
VISIT = Shape(
    required=("visit_id", "event_time", "user_id", "page"),
    optional=(
        *("keep_private", CONTEXT, "context.referral", "context.ad_id"),
        *(USER, *(f"{USER}.{name}" for name in ("ip", "login", "connected_since"))),
        *(TECHNICAL, *(f"{TECHNICAL}.{name}" for name in _TECHNICAL_FIELDS)),
    ),
    time="event_time",
    wrong_types=(
        *(("visit_id", "12345"), ("event_time", "1767571200000"), ("user_id", '{"id":1}'), ("page", '["/"]')),
        *(("keep_private", "1"), (CONTEXT, '"none"'), (USER, "[]"), (TECHNICAL, "7")),
    ),
    numbers=(
        *(("keep_private", '"true"'), ("context.technical.browser_version", "12")),
        *(("context.technical.device_version", "17.20"), ("context.ad_id", "1e3"), ("context.user.login", "true")),
    ),
    other=("context.ad_id", ('"ad-conflict-1"', '"ad-conflict-2"')),
)


@dataclass(frozen=True, kw_only=True)
class Visits:
    """The visit events of the sessions that start in one hour, ordered by arrival; times increase within a session.

    `sessions` are JSON values per session, by field name; a null means that the key is absent.
    """

    session: Ints
    event_ms: Ints
    arrival_ms: Ints
    zone: Ints
    sessions: dict[str, Texts]
    page: Texts
    referral: Texts
    shape: ClassVar[Shape] = VISIT

    def times(self, rows: Ints, moments: Ints | None = None) -> Texts:
        return local_time(self.event_ms[rows] if moments is None else moments, self.zone[self.session[rows]])

    def changed(
        self, rows: Ints, changes: Sequence[FieldChange] = (), extra: str | None = None, inner: str | None = None
    ) -> Texts:
        """Render some events with changed fields, without line feed; `inner` is added to the context."""
        at = pa.array(self.session[rows])
        values = {name: column.take(at) for name, column in self.sessions.items()}
        values["event_time"] = self.times(rows)
        values["page"] = self.page.take(pa.array(rows))
        values["referral"] = self.referral.take(pa.array(rows))

        def named(parent: str, name: str, value: Texts | None = None) -> Texts:
            path = f"{parent}.{name}" if parent else name
            return text.pair(path, values[name] if value is None else value, changes)

        user = text.braces([named(USER, name) for name in ("ip", "login", "connected_since")])
        technical = text.braces([named(TECHNICAL, name) for name in _TECHNICAL_FIELDS])
        parts = [named(CONTEXT, name) for name in ("referral", "ad_id")]
        parts += [named(CONTEXT, "user", user), named(CONTEXT, "technical", technical)]
        context = text.braces(parts + text.constant(inner, len(rows)))
        top = [named("", name) for name in ("visit_id", "event_time", "user_id", "keep_private", "page")]
        return text.braces([*top, named("", CONTEXT, context), *text.constant(extra, len(rows))])


def local_time(moments: Ints, zone: Ints) -> Texts:
    shift = np.array([shift for _, shift in ZONES])[zone]
    return text.quoted_time(moments + shift, text.pick(text.texts(name for name, _ in ZONES), zone))


def events_per_hour(spec: SimulationSpec, hours: int) -> Ints:
    """Computes the number of events per hour of session start, with daily and weekly cycles."""
    weekday = (spec.start.weekday() + np.arange(hours // 24 + 1)) % 7
    weights = (_WEEKDAY_WEIGHTS[weekday][:, None] * _HOUR_WEIGHTS[None, :]).ravel()[:hours]
    days, after = np.split(weights, [spec.first_added])
    a_day = _WEEKDAY_WEIGHTS.mean() * _HOUR_WEIGHTS.sum()
    bounds = (
        np.cumsum(days) / days.sum() * (spec.days * spec.visits_per_day),
        np.cumsum(after) / a_day * spec.visits_per_day,
    )
    return np.concatenate([np.diff(np.round(part).astype(np.int64), prepend=0) for part in bounds])


def visits_of(spec: SimulationSpec, hour: int, rows: int, population: Population, pools: Pools) -> Visits:
    draw = np.random.default_rng([spec.seed, 2, hour])
    end_ms = spec.end_ms(hour)
    sizes = _sizes(draw, rows)
    count = len(sizes)
    start_ms = spec.start_ms + hour * HOUR_MS + draw.integers(0, HOUR_MS - 61_000, count)
    session = np.repeat(np.arange(count), sizes)
    event_ms = _event_times(draw, start_ms, sizes, session, end_ms - _END_MARGIN_MS)
    delay = np.minimum(-np.log1p(-draw.random(rows)) * 1500, 60_000).astype(np.int64)
    arrival_ms = np.minimum(event_ms + delay, end_ms - 1000)
    first = np.zeros(rows, bool)
    first[np.cumsum(sizes) - sizes] = True
    pages = _zipf(draw, rows, len(pools.pages), 1.05)
    users = population.choose(draw, count)
    order = np.argsort(arrival_ms, kind="stable")
    return Visits(
        session=session[order],
        event_ms=event_ms[order],
        arrival_ms=arrival_ms[order],
        zone=population.clock[users],
        sessions=_session_values(draw, start_ms, users, population, pools, hour // 24),
        page=text.pick(pools.pages, pages[order]),
        referral=_referrals(draw, pages, first, pools, order),
    )


def _sizes(draw: np.random.Generator, rows: int) -> Ints:
    enough = int(rows / _MEAN_PAGES * 1.5) + 20
    chosen = np.zeros(0, np.int64)
    while chosen.sum() < rows:
        drawn = np.ceil(np.log1p(-draw.random(enough)) / np.log1p(-1 / _MEAN_PAGES)).astype(np.int64)
        chosen = np.concatenate([chosen, np.clip(drawn, 1, _MOST_PAGES)])
    total = np.cumsum(chosen)
    last = int(np.searchsorted(total, rows)) if rows else -1
    chosen = chosen[: last + 1]
    if rows:
        chosen[-1] -= total[last] - rows
    return chosen


def _event_times(draw: np.random.Generator, start_ms: Ints, sizes: Ints, session: Ints, limit_ms: int) -> Ints:
    """Draws event times, minutes apart; a session that would end after the limit has one-second gaps instead."""
    rows = len(session)
    gaps_ms = np.exp(draw.standard_normal(rows) * 1.2 + np.log(55_000))
    gaps: Ints = np.clip(gaps_ms, 1000, _LONGEST_GAP_MS).astype(np.int64)
    opening = np.cumsum(sizes) - sizes
    gaps[opening] = 0
    if rows and int((start_ms + np.add.reduceat(gaps, opening)).max()) > limit_ms:
        over = start_ms + np.add.reduceat(gaps, opening) > limit_ms
        gaps[over[session] & (gaps > 0)] = 1000
        start_ms = np.where(over, np.minimum(start_ms, limit_ms - 1000 * _MOST_PAGES), start_ms)
    elapsed = np.cumsum(gaps)
    times: Ints = (start_ms - elapsed[opening])[session] + elapsed if rows else gaps
    return times


def _zipf(draw: np.random.Generator, rows: int, size: int, exponent: float) -> Ints:
    weights = np.cumsum(1.0 / np.arange(1, size + 1) ** exponent)
    chosen: Ints = np.searchsorted(weights, draw.random(rows) * weights[-1])
    return np.minimum(chosen, size - 1)


def _referrals(draw: np.random.Generator, pages: Ints, first: Flags, pools: Pools, order: Ints) -> Texts:
    """Draws referrals: an outside address for a session's first page, else the page before; null for some."""
    outside, inside = len(pools.outside_referrals), len(pools.inside_referrals)
    came_from = np.where(first, _zipf(draw, len(pages), outside, 1.0), outside + np.roll(pages, 1))
    chosen = np.where(draw.random(len(pages)) < np.where(first, 0.42, 0.3), outside + inside, came_from)
    every = text.texts([*pools.outside_referrals.to_pylist(), *pools.inside_referrals.to_pylist(), "null"])
    return text.pick(every, chosen[order])


def _session_values(
    draw: np.random.Generator, start_ms: Ints, users: Ints, population: Population, pools: Pools, day: int
) -> dict[str, Texts]:
    count = len(users)
    connected = draw.random(count) < _CONNECTED
    since_ms = start_ms - (draw.random(count) ** 3 * 2 * DAY_MS).astype(np.int64) - 1
    population.connected(users[connected], since_ms[connected])
    since = text.quoted_time(since_ms)
    known = devices_known(day)
    other_device = np.where(draw.random(count) < 0.25, draw.random(count), population.device_rank[users])
    devices = np.minimum((other_device**1.6 * known).astype(np.int64), known - 1)
    browser = _zipf(draw, count, len(BROWSERS), 0.8)
    network = np.where(draw.random(count) < 0.06, len(NETWORKS), _zipf(draw, count, len(NETWORKS), 0.7))
    ad = np.where(draw.random(count) < 0.92, len(pools.ads), _zipf(draw, count, len(pools.ads), 1.0))
    catalogue = [device(number) for number in range(known)]
    everywhere = np.where(connected, np.arange(count), -1)
    return {
        "visit_id": text.quoted(text.hexadecimal(draw, count)),
        "user_id": text.pick(population.ids, users),
        "keep_private": text.pick(text.texts(["false", "true"]), population.private[users].astype(np.int64)),
        "ad_id": text.pick(_with_null(pools.ads), ad),
        "ip": _addresses(draw, population.address[users]),
        "login": text.pick(_with_null(population.logins), np.where(connected, users, population.count)),
        "connected_since": text.pick(since, everywhere),
        "browser": text.pick(pools.browsers, browser),
        "browser_version": text.pick(pools.browser_versions, browser),
        "network_type": text.pick(_with_null(pools.networks), network),
        "device_type": text.pick(text.encoded(device.type for device in catalogue), devices),
        "device_version": text.pick(text.encoded(device.version for device in catalogue), devices),
    }


def _with_null(pool: Texts) -> Texts:
    return pa.concat_arrays([pool, text.texts(["null"])])


def _addresses(draw: np.random.Generator, home: Ints) -> Texts:
    address = home.copy()
    away = draw.random(len(home)) < 0.2
    address[away, 2:] = draw.integers(1, 255, (int(away.sum()), 2))
    a, b, c, d = (text.pick(_ADDRESS, address[:, place]) for place in range(4))
    dot = text.literal(".")
    return text.quoted(a, dot, b, dot, c, dot, d)


BELONGS_MS = 30 * 60_000
"""How long before an event its display was at most."""
HOURS_AHEAD = 1
"""How many hours before the first event of its visit a display may be."""
_LOST = 0.04
_TOO_EARLY = 0.04
_AGAIN = 0.2
_NOT_CLICKED = 0.2
_LONGEST_BEFORE_MS = 10 * 60_000
_LONGEST_AFTER_MS = 20 * 60_000
_END_OF_DISPLAYS_MS = 2_000
DISPLAY = Shape(
    required=("ad_id", "page", "visit_id", "display_time", "campaign"),
    time="display_time",
    wrong_types=(
        ("ad_id", "17"),
        ("page", '["/"]'),
        ("visit_id", '{"id":1}'),
        ("display_time", "1767571200000"),
        ("campaign", "false"),
    ),
    numbers=(("ad_id", "1e3"), ("campaign", "12")),
    other=("campaign", ('"conflict-1"', '"conflict-2"')),
)


@dataclass(frozen=True, kw_only=True)
class Displays:
    event_ms: Ints
    arrival_ms: Ints
    zone: Ints
    values: dict[str, Texts]
    shape: ClassVar[Shape] = DISPLAY

    def times(self, rows: Ints | slice, moments: Ints) -> Texts:
        return local_time(moments, self.zone[rows])

    def changed(
        self, rows: Ints, changes: Sequence[FieldChange] = (), extra: str | None = None, inner: str | None = None
    ) -> Texts:
        """Render some displays without line feed; there is no object within a display."""
        values = {name: column.take(pa.array(rows)) for name, column in self.values.items()}
        values[DISPLAY.time] = self.times(rows, self.event_ms[rows])
        pairs = [text.pair(name, values[name], changes) for name in DISPLAY.required]
        return text.braces(pairs + text.constant(extra, len(rows)))


def displays_of(spec: SimulationSpec, hour: int, visits: Visits, pools: Pools) -> Displays:
    draw = np.random.default_rng([spec.seed, 5, hour])
    count = len(visits.zone)
    first_ms = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(first_ms, visits.session, visits.event_ms)
    named = pc.not_equal(visits.sessions["ad_id"], "null").to_numpy(zero_copy_only=False)
    clicks = np.flatnonzero(named & (draw.random(count) >= _LOST))
    again = clicks[draw.random(len(clicks)) < _AGAIN]
    ignored = np.flatnonzero(draw.random(count) < _NOT_CLICKED)
    session = np.concatenate([clicks, again, ignored])
    moments = np.concatenate(
        [
            first_ms[clicks] - _before(draw, len(clicks)),
            first_ms[again] + draw.integers(500, _LONGEST_AFTER_MS, len(again)),
            first_ms[ignored] + draw.integers(500, _LONGEST_AFTER_MS, len(ignored)),
        ]
    )
    end_ms = spec.end_ms(hour)
    moments = np.clip(moments, spec.begin_ms(hour), end_ms - _END_OF_DISPLAYS_MS)
    delay = np.minimum(-np.log1p(-draw.random(len(moments))) * 1500, 60_000).astype(np.int64)
    # No event names one of the other ads.
    other = text.pick(pools.other_ads, draw.integers(0, len(pools.other_ads), len(ignored)))
    ads = pa.concat_arrays([visits.sessions["ad_id"].take(pa.array(np.concatenate([clicks, again]))), other])
    arrival_ms = np.minimum(moments + delay, end_ms - 1000)
    order = np.argsort(arrival_ms, kind="stable")
    values = {
        "ad_id": ads,
        "page": text.pick(pools.pages, draw.integers(0, len(pools.pages), len(moments))),
        "visit_id": visits.sessions["visit_id"].take(pa.array(session)),
        "campaign": pools.campaigns.take(pc.index_in(ads, pa.concat_arrays([pools.ads, pools.other_ads]))),
    }
    return Displays(
        event_ms=moments[order],
        arrival_ms=arrival_ms[order],
        zone=visits.zone[session][order],
        values={name: column.take(pa.array(order)) for name, column in values.items()},
    )


def _before(draw: np.random.Generator, rows: int) -> Ints:
    early = draw.random(rows) < _TOO_EARLY
    longest = HOURS_AHEAD * HOUR_MS
    long_ago = draw.integers(BELONGS_MS + 60_000, longest - 60_000, rows)
    return np.where(early, long_ago, draw.integers(500, _LONGEST_BEFORE_MS, rows))
