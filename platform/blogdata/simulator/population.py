"""The blog's users and devices, with a snapshot for each day, and the vocabularies: pages, referrals, browsers, ads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from blogdata.simulator import text
from blogdata.simulator.spec import SimulationSpec
from blogdata.simulator.text import DAY_MS, HOUR_MS, Ints, Texts

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
        fresh = self._first_connection[users] == _UNKNOWN
        first = np.full(len(self._first_connection), _NEVER)
        np.minimum.at(first, users[fresh], moments[fresh])
        self._first_connection = np.where(first < _NEVER, first, self._first_connection)
        np.maximum.at(self._last_connection, users, moments)

    def snapshot(self) -> Texts:
        n = self.count
        return text.join(
            text.literal('{"id":'),
            self.ids,
            text.literal(',"login":'),
            self.logins,
            text.literal(',"email":'),
            self._emails,
            text.literal(',"registered_datetime":'),
            text.quoted_time(self._registered[:n]),
            _optional("first_connection_datetime", self._first_connection[:n]),
            _optional("last_connection_datetime", self._last_connection[:n]),
            text.literal("}\n"),
        )

    def _render(self) -> None:
        n = self.count
        numbers = np.arange(n)
        first, last = np.divmod(self._name[:n], len(LAST_NAMES))
        renamed = text.texts(["", *(f".v{version}" for version in range(1, int(self._login_version.max()) + 1))])
        names = text.pick(text.texts(FIRST_NAMES), first), text.literal("."), text.pick(text.texts(LAST_NAMES), last)
        person = text.join(*names, text.digits(numbers, 8))
        self.ids = text.numbered("u", numbers, 8)
        self.logins = text.quoted(person, text.pick(renamed, self._login_version[:n]))
        host = (self._host[:n] + self._email_version[:n]) % len(MAIL_HOSTS)
        self._emails = text.quoted(person, text.literal("@"), text.pick(text.texts(MAIL_HOSTS), host))


def _optional(name: str, moments: Ints) -> Texts:
    known = moments != _UNKNOWN
    rendered = text.join(text.literal(f',"{name}":'), text.quoted_time(np.where(known, moments, 0)))
    present = text.pick(rendered, np.where(known, np.arange(len(moments)), _UNKNOWN))
    return text.join_present([present, text.literal("")], "")


def devices_known(day: int) -> int:
    """Returns the number of devices in the snapshot of a day; 0 is the first day of the span."""
    return FIRST_DAY_DEVICES + day


def device_snapshot(day: int) -> bytes:
    rows = enumerate(map(device, range(devices_known(day))))
    lines = (f"{row.type};{_device_name(number, row.full_name, day)};{row.version}\n" for number, row in rows)
    return ("type;full_name;version\n" + "".join(lines)).encode()


def _device_name(number: int, name: str, day: int) -> str:
    renamed = number < FIRST_DAY_DEVICES and number % 8 == 0
    editions = (day + number // 2 + 3) // 20 if renamed else 0
    return f"{name} (edition {editions + 1})" if editions > 0 else name


BLOG = "https://blog.example.org"

FIRST_NAMES = (
    "ada amir anna bo carla chen dana david elif emma eva felix finn greta hana hugo ines ivan jan jia "
    "julia kai karim lara leo lina luca maria marek mia milan nadia nina noah olga omar paul petra "
    "priya rosa sara sofia tariq tom uma vera wei yara yusuf zoe "
).split()
LAST_NAMES = (
    "abe adams arslan baker bauer berg bianchi brown cohen costa das diaz duval fischer garcia gomez "
    "haddad hansen ito jansen jones kaya khan kim klein kowalski kumar lee lopez martin meyer moreau "
    "nakamura nguyen novak okafor olsen patel petrov popov ricci rossi santos sato schmidt silva singh "
    "smith suzuki tanaka weber wood yilmaz zhang "
).split()
MAIL_HOSTS = ("example.com", "example.org", "mail.example.net", "post.example.de")

_TOPICS = (
    "spark kafka delta-lake parquet python postgres dagster streaming batch idempotency backfill schema "
    "lineage partitioning joins windows testing observability privacy cost"
).split()
_TITLES = (
    "how-{}-works {}-in-production what-i-learned-about-{} {}-for-the-impatient debugging-{} {}-at-scale "
    "the-trouble-with-{} {}-without-tears a-short-history-of-{} ten-mistakes-with-{} {}-explained why-we-left-{} "
    "{}-and-its-friends measuring-{} notes-on-{} {}-patterns my-{}-setup {}-one-year-later"
).split()
_ODD_PAGES = (
    "/search?q=delta+lake&page=2",
    "/2025/03/die-größe-der-dinge",
    '/tags/"quoted"',
    "/2025/06/日本語-notes",
    "/files\\windows",
    "/2024/11/tab\tin-title",
    "/emoji/🚀",
)
_SEARCH = "https://www.google.com/ https://www.bing.com/ https://duckduckgo.com/ https://search.brave.com/".split()
_SOCIAL = (
    "https://www.linkedin.com/feed/ https://news.ycombinator.com/item?id=4100{:02d} "
    "https://www.reddit.com/r/dataengineering/comments/{:02d} https://bsky.app/profile/someone/post/{:02d} "
    "https://mastodon.social/@someone/{:02d}"
).split()
_BLOGS = tuple(f"https://{topic}.blogs.example.net/2025/{month:02d}/links" for topic in _TOPICS for month in (2, 9))


def _pages() -> list[str]:
    dated = [
        f"/20{22 + (n % 5)}/{1 + (n * 7) % 12:02d}/{title.format(topic)}"
        for n, (topic, title) in enumerate((topic, title) for title in _TITLES for topic in _TOPICS)
    ]
    fixed = ["/", "/archive", "/about", "/contact", *(f"/tags/{topic}" for topic in _TOPICS), *_ODD_PAGES]
    return [page for pair in zip(dated, fixed, strict=False) for page in pair] + dated[len(fixed) :]


@dataclass(frozen=True, kw_only=True)
class Device:
    type: str
    version: str
    full_name: str


_MODELS = (
    ("iphone", "Apple iPhone {}", "11 12 13 14 15 16 se-2022 17"),
    ("ipad", "Apple iPad generation {}", "8 9 10 11"),
    ("mac", "Apple Mac with macOS {}", "12 13 14 15 26"),
    ("windows-pc", "PC with Windows {}", "8.1 10 11"),
    ("linux-pc", "PC with Linux {}", "5.15 6.1 6.8 6.12"),
    ("galaxy", "Samsung Galaxy {}", "s20 s21 s22 s23 s24 a34 a54 s25"),
    ("pixel", "Google Pixel {}", "5 6 7 8 9 10"),
    ("xiaomi", "Xiaomi {}", "12 13 14 15"),
    ("chromebook", "Chromebook {}", "spin-714 plus-515"),
    ("smart-tv", "Smart TV {}", "webos-6 webos-24 tizen-8"),
)
FIRST_DAY_DEVICES = 40
"""Number of devices on the first day; each later day adds one."""


def device(number: int) -> Device:
    known = _DEVICES[number] if number < len(_DEVICES) else None
    return known or Device(type="display", version=f"{number:05d}", full_name=f"Networked display {number:05d}")


_DEVICES = [
    Device(type=type_, version=version, full_name=name.format(version))
    for place in range(8)
    for type_, name, versions in _MODELS
    for version in versions.split()[place : place + 1]
]
_BROWSERS = {
    "Chrome": "143.0.7499.40 142.0.7444.175 141.0.7390.122 120.0.6099.71",
    "Safari": "26.1 18.6 17.4",
    "Firefox": "145.0 144.0.2 115.30.0",
    "Edge": "142.0.3595.90 141.0.3537.99",
    "Samsung Internet": "29.0 28.0",
}
BROWSERS = [(name, version) for name, versions in _BROWSERS.items() for version in versions.split()]
NETWORKS = ("wifi", "4g", "5g", "lan")
_ADS = 200
_CAMPAIGNS = 12


@dataclass(frozen=True, kw_only=True)
class Pools:
    """JSON-encoded vocabularies, addressed by position; the most popular entries come first."""

    pages: Texts
    outside_referrals: Texts
    inside_referrals: Texts
    """Full address of each page, used as the referral of the next page."""
    ads: Texts
    other_ads: Texts
    """Ads that are displayed, and never clicked."""
    campaigns: Texts
    """Campaign of each ad, the other ads after those that are clicked."""
    browsers: Texts
    browser_versions: Texts
    networks: Texts


def pools() -> Pools:
    pages = _pages()
    social = [address.format(n) for n in range(20) for address in _SOCIAL[1:]]
    return Pools(
        pages=text.encoded(pages),
        outside_referrals=text.encoded([*_SEARCH, _SOCIAL[0], *social, *_BLOGS]),
        inside_referrals=text.encoded((BLOG + page for page in pages), ascii_only=True),
        ads=text.encoded(f"ad-{n:04d}" for n in range(_ADS)),
        other_ads=text.encoded(f"ad-{n:04d}" for n in range(_ADS, 2 * _ADS)),
        campaigns=text.encoded(f"campaign-{n % _CAMPAIGNS:02d}" for n in range(2 * _ADS)),
        browsers=text.encoded(name for name, _ in BROWSERS),
        browser_versions=text.encoded(version for _, version in BROWSERS),
        networks=text.encoded(NETWORKS),
    )
