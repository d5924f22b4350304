"""The access log of a small blog over 38 hours, made up: what each of its lines must become is known.

BLOGDATA_TEST_LOG may name a real log in combined format: tests that compare with other code read that one instead.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

BEGIN = datetime(2025, 5, 18, 10, tzinfo=timezone.utc)
HOURS = 38
OWN_HOSTS = ("blog.example.org", "www.blog.example.org")

_ENGINE = "AppleWebKit/537.36 (KHTML, like Gecko)"
_WEBKIT = "AppleWebKit/605.1.15 (KHTML, like Gecko)"
_DESKTOPS = (
    "Windows NT 10.0; Win64; x64",
    "Macintosh; Intel Mac OS X 10_15_7",
    "X11; Linux x86_64",
    "X11; Ubuntu; Linux x86_64",
    "X11; CrOS x86_64 14541.0.0",
)
_PHONES = ("10; K", "14; Pixel 8", "13; SM-S918B", "12; moto g(60)", "11; SM-A536B")
AGENTS = tuple(
    agent
    for version in range(112, 138)
    for agent in (
        *(f"Mozilla/5.0 ({system}) {_ENGINE} Chrome/{version}.0.0.0 Safari/537.36" for system in _DESKTOPS),
        *(f"Mozilla/5.0 ({one}; rv:{version}.0) Gecko/20100101 Firefox/{version}.0" for one in _DESKTOPS[:4]),
        *(
            f"Mozilla/5.0 (Linux; Android {one}) {_ENGINE} Chrome/{version}.0.0.0 Mobile Safari/537.36"
            for one in _PHONES
        ),
        f"Mozilla/5.0 ({_DESKTOPS[0]}) {_ENGINE} Chrome/{version}.0.0.0 Safari/537.36 Edg/{version}.0.0.0",
        f"Mozilla/5.0 ({_DESKTOPS[1]}) {_WEBKIT} Version/{version // 8}.{version % 8} Safari/605.1.15",
        f"Mozilla/5.0 (iPhone; CPU iPhone OS {version // 8}_{version % 8} like Mac OS X) {_WEBKIT}"
        f" Version/{version // 8}.{version % 8} Mobile/15E148 Safari/604.1",
    )
)
"""Agents of browsers."""
_CRAWLERS = (
    "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
    "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)",
    "Mozilla/5.0 (compatible; AhrefsBot/7.0; +http://ahrefs.com/robot/)",
    "Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)",
    "Mozilla/5.0+(compatible; UptimeRobot/2.0; http://www.uptimerobot.com/)",
    "python-requests/2.31.0",
    "curl/8.5.0",
    "-",
)
_READERS = ("Feedly/1.0 (+http://www.feedly.com/fetcher.html; like FeedFetcher-Google)", "Tiny Tiny RSS/1.11")
_PAGES = (
    "/ /about/ /blog/late-data /blog/late-data/ /blog/caf%C3%A9-notes/ /blog/sessions.html?page=2 "
    "/blog/backfills/?utm_source=Newsletter&utm_medium=email&utm_campaign=may /blog/idempotent-writes/ "
    "/blog/idempotent-writes/?utm_source=mastodon /tags/spark"
).split()
_ASSETS = "/css/site.css /js/search.js?v=3 /img/Header.PNG /favicon.ico /fonts/serif.woff2".split()
_SITES = (
    "- - - - https://www.google.com/ https://duckduckgo.com/ https://news.example.com/item?id=17 "
    "http://a.example.net/links"
).split()
_NOISE = (
    ("GET /wp-login.php HTTP/1.1", 404, "status"),
    ("GET /blog/gone/ HTTP/1.1", 410, "status"),
    ("GET /blog HTTP/1.1", 301, "status"),
    ("GET /search?q=slow HTTP/1.1", 503, "status"),
    ("POST /comments HTTP/1.1", 200, "method"),
    ("HEAD / HTTP/1.1", 200, "method"),
)
REPEATED = "/papers/late-data.pdf"
"""The page that is logged twice for two visitors: the same line, and another one."""
REPEATED_FROM = "https://search.example.net/"


@dataclass(frozen=True, kw_only=True)
class Request:
    """A request and what its line must become."""

    time: datetime
    client: tuple[str, str]
    request: str
    status: int = 200
    size: int = 5120
    referrer: str = "-"
    filtered_by: str | None = None
    """The filter that removes it; None: a page view."""
    visit: int = 0
    repeats: bool = False
    """It is the page view of the line before, once more."""

    @property
    def line(self) -> bytes:
        (address, agent), stamp = self.client, f"{self.time:%d/%b/%Y:%H:%M:%S} +0000"
        text = f'{address} - - [{stamp}] "{self.request}" {self.status} {self.size} "{self.referrer}" "{agent}"\n'
        return text.encode()


@dataclass
class _Blog:
    draw: random.Random = field(default_factory=lambda: random.Random(7))
    visits: int = 0
    readers: list[tuple[tuple[str, str], datetime]] = field(default_factory=list)

    def client(self, now: datetime) -> tuple[str, str]:
        """Choose who comes: somebody new, or somebody whose last visit is over."""
        away = [client for client, last in self.readers if last < now - timedelta(hours=2)]
        number = len({client for client, _ in self.readers})
        address = (f"198.51.100.{number % 250}", f"203.0.113.{number % 250}", f"2001:db8::{number:x}")[number % 3]
        chosen = self.draw.choice(away) if away and self.draw.random() < 0.2 else (address, self.draw.choice(AGENTS))
        self.readers = [reader for reader in self.readers if reader[0] != chosen] + [(chosen, now)]
        return chosen

    def visit(self, begin: datetime) -> Iterator[Request]:
        """Up to five pages, each with what its browser loads for it."""
        self.visits += 1
        client, time, referrer = self.client(begin), begin, self.draw.choice(_SITES)
        for _ in range(self.draw.randint(1, 5)):
            page, size = self.draw.choice(_PAGES), self.draw.randint(900, 90_000)
            status = self.draw.choice((200, 200, 200, 304, 206))
            view = Request(time=time, client=client, request=f"GET {page} HTTP/1.1", status=status, size=size)
            yield replace(view, referrer=referrer, visit=self.visits)
            referrer = f"https://{self.draw.choice((OWN_HOSTS[0],) * 5 + OWN_HOSTS[1:])}{page}"
            for asset in self.draw.sample(_ASSETS, self.draw.randint(0, 3)):
                loaded = replace(view, time=time + timedelta(seconds=1), request=f"GET {asset} HTTP/2.0", status=200)
                yield replace(loaded, referrer=referrer, filtered_by="asset")
            time += timedelta(seconds=self.draw.randint(20, 300))

    def others(self, begin: datetime) -> Iterator[Request]:
        """Crawlers, feed readers, and what is no page."""

        def of_a_machine(agent: str, request: str, filtered_by: str, status: int = 200) -> Request:
            time = begin + timedelta(seconds=self.draw.randrange(3600))
            client = (f"192.0.2.{self.draw.randint(1, 40)}", agent)
            return Request(time=time, client=client, request=request, filtered_by=filtered_by, status=status, size=310)

        for _ in range(self.draw.randint(4, 9)):
            page = self.draw.choice(_PAGES)
            yield of_a_machine(self.draw.choice(_CRAWLERS), f"GET {page} HTTP/1.1", "crawler")
        for _ in range(self.draw.randint(2, 5)):
            feed = self.draw.choice(("/feed/", "/blog/index.xml", "/?flav=atom"))
            yield of_a_machine(self.draw.choice(_READERS), f"GET {feed} HTTP/1.1", "feed")
        for request, status, filtered_by in self.draw.sample(_NOISE, self.draw.randint(1, 3)):
            yield of_a_machine(self.draw.choice(AGENTS), request, filtered_by, status)

    def robot(self, begin: datetime) -> Iterator[Request]:
        """A browser by its name that reads /robots.txt first, and pages behind it."""
        came = Request(time=begin, client=("192.0.2.99", AGENTS[0]), request="GET /robots.txt HTTP/1.1")
        yield replace(came, filtered_by="asset")
        for at, page in enumerate(("/", "/about/", "/tags/spark"), 1):
            time = begin + timedelta(seconds=40 * at)
            yield replace(came, time=time, request=f"GET {page} HTTP/1.1", filtered_by="crawler")

    def repeated(self, begin: datetime) -> Iterator[Request]:
        """Two visitors whose request is logged twice: the same line, and one with another size."""
        for number, size in enumerate((5120, 77)):
            self.visits += 1
            client, time = (f"192.0.2.{200 + number}", AGENTS[number]), begin + timedelta(minutes=number)
            view = Request(time=time, client=client, request=f"GET {REPEATED} HTTP/1.1", visit=self.visits)
            yield replace(view, referrer=REPEATED_FROM)
            yield replace(view, referrer=REPEATED_FROM, size=size, repeats=True)


def _requests() -> Iterator[Request]:
    blog = _Blog()
    for number in range(HOURS):
        hour = BEGIN + timedelta(hours=number)
        for _ in range(blog.draw.randint(4, 8)):
            yield from blog.visit(hour + timedelta(seconds=blog.draw.randrange(3600)))
        yield from blog.others(hour)
        if number in (3, 30):
            yield from blog.robot(hour + timedelta(minutes=10))
        if number == 20:
            yield from blog.repeated(hour)


END = BEGIN + timedelta(hours=HOURS)
REQUESTS = [made for made in sorted(_requests(), key=lambda request: request.time) if made.time < END]
LINES = [request.line for request in REQUESTS]
VIEWS = [request for request in REQUESTS if request.filtered_by is None]
FILTERED = Counter(request.filtered_by for request in REQUESTS if request.filtered_by)


def lines_of_a_log() -> list[bytes]:
    """List the lines of this log, or of the real one that is named, without line feeds."""
    real = os.environ.get("BLOGDATA_TEST_LOG")
    content = Path(real).read_bytes() if real else b"".join(LINES)
    return content.removesuffix(b"\n").split(b"\n")
