"""Lines of access logs, in any of the known formats, to page views: a line is read, judged and parsed by itself.

A line is read by the first format that fits it (:mod:`blogdata.landing.log_formats`). A line that fits none is
rejected, and the reason names the nearest format and the first field that does not fit, such as
`not_combined_log:time`. Lines that are not page views are filtered by name: `comment` (`#Fields: …`), `excluded`,
`method`, `status`, `asset`, `feed`, `crawler`, the first that matches.

Visitors are anonymous: `user_id` is a keyed hash of client and agent. What visit a page view belongs to is decided by
:mod:`assets.transforms.visits_by_inactivity`, and who acts like a crawler by :func:`with_acting_crawlers`: that takes
other lines, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, NamedTuple

from assets.transforms import crawlers, link_campaigns
from assets.transforms.arrival_times import IMPOSSIBLE, hours_of
from assets.transforms.crawlers import Lists
from assets.transforms.request_clients import client_of, in_networks, is_address
from assets.transforms.request_targets import referring_host, target_of
from blogdata.landing.json_lines import text_of, unreadable_line
from blogdata.landing.log_formats import COMMENT, UNKNOWN, Misfit, formats, time_of
from blogdata.landing.records import Values
from blogdata.patterns.error_management.filter_interceptor import Filter, first_match
from blogdata.publish.partitions import Grain, start_of
from blogdata.services.config import CrawlerSettings, ExcludedRequests, LogSettings
from quality.contracts.requests import METHODS

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_LONGEST_AGENT = 4096
_ROBOTS_TXT = "/robots.txt"
_ASSETS = frozenset(
    "css js mjs png jpg jpeg gif ico svg webp avif woff woff2 ttf otf eot map mp4 webm mp3 ogg zip gz tar tgz jar"
    " exe iso deb rpm".split()
)
_ASSET_PATHS = (_ROBOTS_TXT, "/favicon.ico", "/sitemap.xml")
_FEED_PATH = re.compile(r"(?:^|/)(?:feed|rss|atom)(?:/|\Z)|\.(?:rss|atom)\Z|(?:^|/)(?:index|atom|rss|feed)\.xml\Z")
_FEED_QUERY = re.compile("flav=rss|flav=atom|feed=")
_STATUS = re.compile(r"[1-5][0-9]{2}\Z")
_HOST = re.compile(r"[a-z0-9._-]{1,253}\Z|\[[0-9a-f:.]+\]\Z")
_PORT = re.compile(r":\d+\Z")
_MOST_DIGITS = 18
_TIMES = ("event_time", "connected_since")
_TRUTHS = ("keep_private", "is_asset", "is_feed")
PARSED = (
    *("visit_id", "event_time", "event_hour", "user_id", "keep_private", "page", "utm", "referral", "ad_id", "ip"),
    *("login", "connected_since", "browser", "browser_version", "network_type", "device_type", "device_version"),
)
REQUEST = ("client", "agent", "host", "method", "status", "bytes", "is_asset", "is_feed")
"""Columns of usable requests besides :data:`PARSED`, page views or not."""
COLUMNS = (*PARSED, *REQUEST, "format", "crawler", "filtered_by", "reasons")
_NOTHING = (None,) * len((*PARSED, *REQUEST))


class Device(NamedTuple):
    """The parts of an agent string; None for a part it does not name. On a desktop `device_type` is the system."""

    browser: str | None = None
    browser_version: str | None = None
    device_type: str | None = None
    device_version: str | None = None


class Request(NamedTuple):
    """What the verdict on a request is about."""

    client: str
    agent: str | None
    path: str
    method: str
    status: str
    is_asset: bool
    is_feed: bool


class LogLines:
    """Reads lines of access logs into :data:`COLUMNS`; `user_id` and `visit_id` stay null.

    It has the lists of crawlers with it: Spark's workers may have been started before these were upgraded.
    """

    def __init__(self, logs: LogSettings) -> None:
        self.logs, self.lists = logs, crawlers.installed()

    @property
    def schema(self) -> pa.Schema:
        import pyarrow as pa

        types = dict.fromkeys(COLUMNS, pa.string())
        types |= dict.fromkeys(_TIMES, pa.timestamp("us", "UTC")) | dict.fromkeys(_TRUTHS, pa.bool_())
        return pa.schema({**types, "bytes": pa.int64(), "reasons": pa.list_(pa.string())})

    def has_state(self, file: str) -> bool:
        return True

    def of_file(self, file: str, partition: str) -> Callable[[int, bytes], Values]:
        log, verdict_on, proxies = (
            formats(self.logs.formats).of_log(),
            Verdicts(self.logs, self.lists).on,
            self.logs.proxies,
        )
        hour_of, begin = hours_of(partition), start_of(partition, Grain.HOUR)

        def read(offset: int, raw: bytes) -> Values:
            text = text_of(raw)
            if text is None:
                return _rejected(UNKNOWN, unreadable_line(raw))
            found = log.read(text)
            if isinstance(found, Misfit):
                return _rejected(UNKNOWN, found.reason)
            name, fields = found
            if name == COMMENT:
                # A comment has no time: it counts in the hour in which it has arrived.
                return (None, begin, partition, *_NOTHING[3:], name, None, COMMENT, [])
            forwarded = fields.get("forwarded")
            client, time = client_of(fields["address"], forwarded, proxies), time_of(fields["time"])
            if client is None or time is None:
                field = "address" if client is None else "time"
                return _rejected(name, Misfit(format=name, field=field).reason)
            hour = hour_of(time)
            if hour is None:
                return _rejected(name, IMPOSSIBLE)
            method, path, query = target_of(fields["request"])
            agent, status = fields.get("agent"), fields["status"]
            request = Request(client, agent, path, method, status, _is_asset(path), _is_feed(path, query))
            crawler, filtered_by = verdict_on(request)
            device = device_of(agent) if agent and filtered_by is None else _NO_DEVICE
            return (
                *(None, time, hour, None, True, path if path[:1] == "/" else None),
                link_campaigns.campaign_of(query) if query else None,
                *(referring_host(fields.get("referrer")), None, client if is_address(client) else None, None, None),
                *(device.browser, device.browser_version, None, device.device_type, device.device_version),
                *(client, agent, _host(fields.get("host")), method if method in METHODS else None),
                *(status if _STATUS.match(status) else None, _bytes(fields.get("bytes", ""))),
                *(request.is_asset, request.is_feed, name, crawler, filtered_by, []),
            )

        return read


class Verdicts:
    """Judges requests by the settings and by the lists of crawlers."""

    def __init__(self, logs: LogSettings, lists: Lists) -> None:
        self._lists, self._exclude = lists, logs.exclude
        self._is_any_excluded = logs.exclude != ExcludedRequests()
        self._crawlers = logs.crawlers.addresses

    def on(self, request: Request) -> tuple[str | None, str | None]:
        """Return the category of the crawler that sent a request, and the filter that removes it; None for none."""
        agent = request.agent
        crawler = self._lists.category(agent) if agent is not None else None
        if crawler is None and in_networks(request.client, self._crawlers):
            crawler = "other"
        return crawler, self._filter(request, crawler)

    def _filter(self, request: Request, crawler: str | None) -> str | None:
        if self._is_any_excluded and self._excludes(request):
            return "excluded"
        if request.method != "GET" or request.path[:1] != "/":
            return "method"
        if request.status[:1] != "2" and request.status != "304":
            return "status"
        if request.is_asset:
            return "asset"
        if request.is_feed:
            return "feed"
        return None if crawler is None else "crawler"

    def _excludes(self, request: Request) -> bool:
        exclude = self._exclude
        agent = request.agent.lower() if exclude.agents and request.agent else ""
        return (
            any(text in agent for text in exclude.agents)
            or bool(self._paths and self._paths.match(request.path))
            or in_networks(request.client, exclude.addresses)
        )

    @cached_property
    def _paths(self) -> re.Pattern[str] | None:
        return re.compile("|".join(map(_pattern, self._exclude.paths))) if self._exclude.paths else None


def with_acting_crawlers(rows: DataFrame, settings: CrawlerSettings) -> DataFrame:
    """Name the clients that act like a crawler, and filter what they ask for.

    Who acts is a client with its agent. It reads /robots.txt in an hour of arrival, or views too many pages in it: the
    verdict depends on no other hour, and on no run. `rows` are all of each of their hours, with :data:`COLUMNS`,
    arrival_hour and the place of the line.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    # Lines without a client are spread.
    client = F.coalesce("client", F.concat_ws(" ", "source_file", "source_offset"))
    who = Window.partitionBy("arrival_hour", client, "agent")
    robots = F.lit(settings.robots_txt) & (F.col("page") == _ROBOTS_TXT)
    views = F.count(F.when(F.col("filtered_by").isNull(), F.col("client"))).over(who)
    acts = F.max(F.coalesce(robots, F.lit(False))).over(who) | (views > settings.most_views)
    crawler = F.coalesce("crawler", F.when(F.col("client").isNotNull() & acts, F.lit("other")))
    by_act = first_match([Filter(name="crawler", removes=F.col("crawler").isNotNull())])
    return rows.withColumn("crawler", crawler).withColumn("filtered_by", F.coalesce("filtered_by", by_act))


def device_of(agent: str) -> Device:
    """Parse an agent string; characters after the first 4,096 are ignored."""
    return _device_of(agent[:_LONGEST_AGENT])


@lru_cache(maxsize=8192)
def _device_of(agent: str) -> Device:
    import ua_parser

    found = ua_parser.parse(agent)
    browser, system, device = found.user_agent, found.os, found.device
    return Device(
        browser=browser.family if browser else None,
        browser_version=_version(browser.major, browser.minor, browser.patch) if browser else None,
        device_type=device.family if device else system.family if system else None,
        device_version=_version(system.major, system.minor, system.patch) if system else None,
    )


_NO_DEVICE = Device()


def _version(*parts: str | None) -> str | None:
    given = []
    for part in parts:
        if part is None:
            break
        given.append(part)
    return ".".join(given) or None


def _rejected(name: str, reason: str) -> Values:
    return (*_NOTHING, name, None, None, [reason])


def _host(logged: str | None) -> str | None:
    """Return the name of a host as logged; clients make up others."""
    name = _PORT.sub("", logged.lower()) if logged else ""
    return name if _HOST.match(name) else None


def _bytes(logged: str) -> int:
    return int(logged) if logged.isdecimal() and len(logged) <= _MOST_DIGITS else 0


def _is_asset(path: str) -> bool:
    _, dot, extension = path.rpartition(".")
    return path in _ASSET_PATHS or (dot == "." and extension.lower() in _ASSETS)


def _is_feed(path: str, query: str) -> bool:
    return _FEED_PATH.search(path) is not None or _FEED_QUERY.search(query) is not None


def _pattern(path: str) -> str:
    """Return the expression of a path: a pattern with `*` or `?` for all of it, else what it begins with."""
    pattern = re.escape(path).replace(r"\*", ".*").replace(r"\?", ".")
    return pattern + (r"\Z" if {"*", "?"} & {*path} else "")
