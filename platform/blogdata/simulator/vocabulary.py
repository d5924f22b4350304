"""Vocabularies of the simulated blog: pages, referrals, names, browsers and devices."""

from __future__ import annotations

from dataclasses import dataclass

from blogdata.simulator.text import Texts, encoded

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
    "how-{}-works",
    "{}-in-production",
    "what-i-learned-about-{}",
    "{}-for-the-impatient",
    "debugging-{}",
    "{}-at-scale",
    "the-trouble-with-{}",
    "{}-without-tears",
    "a-short-history-of-{}",
    "ten-mistakes-with-{}",
    "{}-explained",
    "why-we-left-{}",
    "{}-and-its-friends",
    "measuring-{}",
    "notes-on-{}",
    "{}-patterns",
    "my-{}-setup",
    "{}-one-year-later",
)
_ODD_PAGES = (
    "/search?q=delta+lake&page=2",
    "/2025/03/die-größe-der-dinge",
    '/tags/"quoted"',
    "/2025/06/日本語-notes",
    "/files\\windows",
    "/2024/11/tab\tin-title",
    "/emoji/🚀",
)
_SEARCH = (
    "https://www.google.com/",
    "https://www.bing.com/",
    "https://duckduckgo.com/",
    "https://search.brave.com/",
)
_SOCIAL = (
    "https://www.linkedin.com/feed/",
    "https://news.ycombinator.com/item?id=4100{:02d}",
    "https://www.reddit.com/r/dataengineering/comments/{:02d}",
    "https://bsky.app/profile/someone/post/{:02d}",
    "https://mastodon.social/@someone/{:02d}",
)
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
    """A row of the device reference data; the key is (type, version)."""

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
    """Returns the device with a number; a number beyond the known models is a networked display."""
    known = _DEVICES[number] if number < len(_DEVICES) else None
    return known or Device(type="display", version=f"{number:05d}", full_name=f"Networked display {number:05d}")


def _interleaved() -> list[Device]:
    rows = [
        (place, Device(type=type_, version=version, full_name=name.format(version)))
        for type_, name, versions in _MODELS
        for place, version in enumerate(versions.split())
    ]
    return [one for _, one in sorted(rows, key=lambda row: row[0])]


_DEVICES = _interleaved()
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
    """Builds the vocabularies; inside referrals escape non-ASCII characters, pages do not: producers differ in this."""
    pages = _pages()
    social = [address.format(n) for n in range(20) for address in _SOCIAL[1:]]
    return Pools(
        pages=encoded(pages),
        outside_referrals=encoded([*_SEARCH, _SOCIAL[0], *social, *_BLOGS]),
        inside_referrals=encoded((BLOG + page for page in pages), ascii_only=True),
        ads=encoded(f"ad-{n:04d}" for n in range(_ADS)),
        other_ads=encoded(f"ad-{n:04d}" for n in range(_ADS, 2 * _ADS)),
        campaigns=encoded(f"campaign-{n % _CAMPAIGNS:02d}" for n in range(2 * _ADS)),
        browsers=encoded(name for name, _ in BROWSERS),
        browser_versions=encoded(version for _, version in BROWSERS),
        networks=encoded(NETWORKS),
    )
