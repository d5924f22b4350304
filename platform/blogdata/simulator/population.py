"""The blog's users and devices, with a snapshot for each day."""

from __future__ import annotations

import numpy as np

from blogdata.simulator.spec import SimulationSpec
from blogdata.simulator.text import (
    DAY_MS,
    HOUR_MS,
    Ints,
    Texts,
    digits,
    join,
    join_present,
    literal,
    numbered,
    pick,
    quoted_time,
    texts,
)
from blogdata.simulator.vocabulary import FIRST_DAY_DEVICES, FIRST_NAMES, LAST_NAMES, MAIL_HOSTS, device

_UNKNOWN = -1
_NEVER = np.iinfo(np.int64).max
_MOST_USERS = 200_000
_EVENTS_PER_USER = 6
_LOGIN_CHANGES = 0.002
_EMAIL_CHANGES = 0.003
_ZIPF = 0.9


class Population:
    """All users of the span, in their state on one day; the day only moves forward."""

    def __init__(self, spec: SimulationSpec) -> None:
        self._spec = spec
        self._random = np.random.default_rng([spec.seed, 1])
        base = int(np.clip(spec.visits_per_day // _EVENTS_PER_USER, 20, _MOST_USERS))
        self._joining = max(1, base // 200)
        self._base = base
        everyone = base + self._joining * spec.days
        draw = self._random
        self._name = draw.integers(0, len(FIRST_NAMES) * len(LAST_NAMES), everyone)
        self._host = draw.integers(0, len(MAIL_HOSTS), everyone)
        self._login_version = np.zeros(everyone, np.int64)
        self._email_version = np.zeros(everyone, np.int64)
        self._registered = spec.start_ms - draw.integers(1, 900 * DAY_MS, everyone)
        newcomers = np.arange(everyone - base)
        self._registered[base:] = spec.start_ms + (newcomers // self._joining) * DAY_MS + newcomers % HOUR_MS
        self._first_connection = np.where(draw.random(everyone) < 0.7, self._registered + HOUR_MS, _UNKNOWN)
        self._first_connection[base:] = _UNKNOWN
        member_for = (spec.start_ms - self._registered) * draw.random(everyone) * 0.9
        connected = self._first_connection != _UNKNOWN
        latest = self._first_connection + member_for.astype(np.int64)
        self._last_connection = np.where(connected, latest, _UNKNOWN)
        self.private = draw.random(everyone) < 0.18
        self.address = draw.integers(1, [224, 256, 256, 255], (everyone, 4))
        self.device_rank = draw.random(everyone)
        self.clock = draw.choice(3, everyone, p=[0.86, 0.09, 0.05])
        weights = 1.0 / np.arange(1, everyone + 1) ** _ZIPF
        draw.shuffle(weights)
        self._activity = np.cumsum(weights)
        self.day = 0
        self._render()

    @property
    def count(self) -> int:
        """Number of users registered by the end of the day; nobody registers in hours that were added later."""
        return self._base + self._joining * min(self.day + 1, self._spec.days)

    def next_day(self) -> None:
        """Moves to the next day: some users change their login or email, new ones register."""
        before = self.count
        self.day += 1
        self._login_version[:before] += self._random.random(before) < _LOGIN_CHANGES
        self._email_version[:before] += self._random.random(before) < _EMAIL_CHANGES
        self._render()

    def choose(self, generator: np.random.Generator, rows: int) -> Ints:
        """Draws users, weighted by their activity (Zipf)."""
        known = self._activity[: self.count]
        chosen: Ints = np.searchsorted(known, generator.random(rows) * known[-1])
        return np.minimum(chosen, self.count - 1)

    def connected(self, users: Ints, moments: Ints) -> None:
        """Records that users were connected at the given moments (milliseconds since 1970)."""
        fresh = self._first_connection[users] == _UNKNOWN
        first = np.full(len(self._first_connection), _NEVER)
        np.minimum.at(first, users[fresh], moments[fresh])
        self._first_connection = np.where(first < _NEVER, first, self._first_connection)
        np.maximum.at(self._last_connection, users, moments)

    def snapshot(self) -> Texts:
        """Returns the users at the end of the day as JSON lines."""
        n = self.count
        return join(
            literal('{"id":'),
            self.ids,
            literal(',"login":'),
            self.logins,
            literal(',"email":'),
            self._emails,
            literal(',"registered_datetime":'),
            quoted_time(self._registered[:n]),
            _optional("first_connection_datetime", self._first_connection[:n]),
            _optional("last_connection_datetime", self._last_connection[:n]),
            literal("}\n"),
        )

    def _render(self) -> None:
        n = self.count
        numbers = np.arange(n)
        first, last = np.divmod(self._name[:n], len(LAST_NAMES))
        renamed = texts(["", *(f".v{version}" for version in range(1, int(self._login_version.max()) + 1))])
        names = pick(texts(FIRST_NAMES), first), literal("."), pick(texts(LAST_NAMES), last)
        person = join(*names, digits(numbers, 8))
        self.ids = numbered("u", numbers, 8)
        self.logins = join(literal('"'), person, pick(renamed, self._login_version[:n]), literal('"'))
        host = (self._host[:n] + self._email_version[:n]) % len(MAIL_HOSTS)
        self._emails = join(literal('"'), person, literal("@"), pick(texts(MAIL_HOSTS), host), literal('"'))


def _optional(name: str, moments: Ints) -> Texts:
    known = moments != _UNKNOWN
    rendered = join(literal(f',"{name}":'), quoted_time(np.where(known, moments, 0)))
    return join_present([pick(rendered, np.where(known, np.arange(len(moments)), _UNKNOWN)), literal("")], "")


def devices_known(day: int) -> int:
    """Returns the number of devices in the snapshot of a day; 0 is the first day of the span."""
    return FIRST_DAY_DEVICES + day


def device_snapshot(day: int) -> bytes:
    """Returns the devices of a day as CSV."""
    rows = [
        (one, _device_name(number, one.full_name, day))
        for number, one in enumerate(map(device, range(devices_known(day))))
    ]
    return ("type;full_name;version\n" + "".join(f"{one.type};{name};{one.version}\n" for one, name in rows)).encode()


def _device_name(number: int, name: str, day: int) -> str:
    renamed = number < FIRST_DAY_DEVICES and number % 8 == 0
    editions = (day + number // 2 + 3) // 20 if renamed else 0
    return f"{name} (edition {editions + 1})" if editions > 0 else name
