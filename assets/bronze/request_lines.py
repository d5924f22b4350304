"""Lines of access logs, in any of the known formats, to page views: a line is read, judged and parsed by itself.

A line is read by the first format that fits it (:mod:`blogdata.landing.log_formats`). A line that fits none is
rejected, and the reason names the nearest format and the first field that does not fit, such as
`not_combined_log:time`. Lines that are not page views are filtered by name: `comment` (`#Fields: …`), `continued` (a
part, whose line is the row of its end), `excluded`, `method`, `status`, `asset`, `feed`, `crawler`, the first that
matches.

Visitors are anonymous: `user_id` is a keyed hash of client and agent. What visit a page view belongs to is decided by
:mod:`assets.silver.log_visits`, and who acts like a crawler by :func:`with_acting_crawlers`: that takes
other lines, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from assets.bronze import crawlers, link_campaigns
from assets.bronze.arrival_times import IMPOSSIBLE, hours_of
from assets.bronze.request_targets import referring_host, target_of
from blogdata.contract.partitions import Grain, start_of
from blogdata.landing.clients import client_of, in_networks, is_address
from blogdata.landing.json_lines import unreadable_line
from blogdata.landing.lines import LineReader, Values
from blogdata.landing.log_envelopes import decoded
from blogdata.landing.log_formats import COMMENT, UNKNOWN, Misfit, formats, time_of
from blogdata.operate.config import CrawlerSettings, ExcludedRequests, LogSettings
from blogdata.patterns.error_management.filter_interceptor import Filter, first_match
from quality.contracts.columns import CONTEXT
from quality.contracts.requests_daily import METHODS
from quality.contracts.visits import FOUND, RECEIVED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CONTINUED = "continued"
"""Name of the filter of parts of lines, as a container's runtime writes long ones."""
CRAWLER = "crawler"
"""Name of the filter that removes requests of crawlers, by what they send or do."""
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
_NOTHING = (None,) * len(FOUND)


class Request(NamedTuple):
    """What the filters judge; `crawler` is the category of the crawler that sent it."""

    client: str
    agent: str | None
    path: str
    method: str
    status: str
    is_asset: bool
    is_feed: bool
    crawler: str | None


class LogLines(LineReader):
    """Reads lines of access logs; `user_id` and `visit_id` stay null."""

    contract = RECEIVED

    def __init__(self, logs: LogSettings) -> None:
        self._logs = logs

    def of_file(self, file: str, partition: str) -> Callable[[int, bytes], Values]:
        logs = self._logs
        known, filters = formats(logs.formats, logs.zone), _filters(logs.exclude)
        log, zone = known.of_log(), known.zone
        hour_of, begin = hours_of(partition), start_of(partition, Grain.HOUR)

        def read(offset: int, raw: bytes) -> Values:
            text = decoded(raw)
            if text is None:
                return _rejected(UNKNOWN, unreadable_line(raw))
            match = log.read(text)
            if isinstance(match, Misfit):
                return _rejected(UNKNOWN, match.reason)
            name, fields = match
            if name == COMMENT:
                # It is no request with a time: it counts in the hour in which it has arrived.
                return (name, begin, partition, [], None, CONTINUED if fields else COMMENT, *_NOTHING)
            client = client_of(fields["address"], fields.get("forwarded"), logs.proxies)
            time = time_of(fields["time"], zone)
            if client is None or time is None:
                field = "address" if client is None else "time"
                return _rejected(name, Misfit(format=name, field=field).reason)
            hour = hour_of(time)
            if hour is None:
                return _rejected(name, IMPOSSIBLE)
            method, path, query, asked = target_of(fields["request"])
            agent, status = fields.get("agent"), fields["status"] if _STATUS.match(fields["status"]) else None
            crawler = crawlers.category(agent) if agent is not None else None
            if crawler is None and in_networks(client, logs.crawlers.addresses):
                crawler = "other"
            is_feed = bool(_FEED_PATH.search(path) or _FEED_QUERY.search(query))
            request = Request(client, agent, path, method, status or "", _is_asset(path), is_feed, crawler)
            filtered_by = first_match(filters, request)
            device = device_of(agent[:_LONGEST_AGENT]) if agent and filtered_by is None else _NO_DEVICE
            return (
                *(name, time, hour, [], crawler, filtered_by),
                *(None, None, True, path if path[:1] == "/" else None, referring_host(fields.get("referrer")), None),
                link_campaigns.campaign_of(query) if query else None,
                *device,
                *(client if is_address(client) else None, None, None),
                *(client, agent, _host(fields.get("host"), asked), method if method in METHODS else None),
                *(status, _bytes(fields.get("bytes", ""))),
                *(request.is_asset, is_feed),
            )

        return read


def _filters(exclude: ExcludedRequests) -> list[Filter[Request]]:
    """Return the filters of requests, in the order in which they are asked."""
    paths = re.compile("|".join(map(_pattern, exclude.paths))) if exclude.paths else None

    def is_excluded(request: Request) -> bool:
        agent = request.agent.lower() if exclude.agents and request.agent else ""
        return (
            any(text in agent for text in exclude.agents)
            or bool(paths and paths.match(request.path))
            or in_networks(request.client, exclude.addresses)
        )

    filters: list[Filter[Request]] = [
        ("excluded", is_excluded),
        ("method", lambda request: request.method != "GET" or request.path[:1] != "/"),
        ("status", lambda request: request.status[:1] != "2" and request.status != "304"),
        ("asset", lambda request: request.is_asset),
        ("feed", lambda request: request.is_feed),
        (CRAWLER, lambda request: request.crawler is not None),
    ]
    return filters if exclude != ExcludedRequests() else filters[1:]


def with_acting_crawlers(rows: DataFrame, settings: CrawlerSettings) -> DataFrame:
    """Name the clients that act like a crawler, and filter what they ask for.

    Who acts is a client with its agent. It reads /robots.txt in an hour of arrival, or views too many pages in it: the
    verdict depends on no other hour, and on no run. `rows` are all of each of their hours, as of bronze.visits.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    # Lines without a client are spread.
    client = F.coalesce("client", F.concat_ws(" ", "source_file", "source_offset"))
    # Sorted by what differs in its first bytes.
    who = Window.partitionBy(client, "agent", "arrival_hour")
    robots = F.lit(settings.robots_txt) & (F.col("page") == _ROBOTS_TXT)
    views = F.count(F.when(F.col("filtered_by").isNull(), F.col("client"))).over(who)
    acts = F.max(F.coalesce(robots, F.lit(False))).over(who) | (views > settings.most_views)
    crawler = F.coalesce("crawler", F.when(F.col("client").isNotNull() & acts, F.lit("other")))
    by_act = F.when(F.col("crawler").isNotNull(), F.lit(CRAWLER))
    return rows.withColumn("crawler", crawler).withColumn("filtered_by", F.coalesce("filtered_by", by_act))


@lru_cache(maxsize=8192)
def device_of(agent: str) -> tuple[str | None, ...]:
    """Parse an agent string into the columns CONTEXT; on a desktop `device_type` is the system."""
    import ua_parser

    parsed = ua_parser.parse(agent)
    browser, system, device = parsed.user_agent, parsed.os, parsed.device
    return (
        *((browser.family, _version(browser.major, browser.minor, browser.patch)) if browser else (None, None)),
        None,
        device.family if device else system.family if system else None,
        _version(system.major, system.minor, system.patch) if system else None,
    )


_NO_DEVICE = (None,) * len(CONTEXT)


def _version(*parts: str | None) -> str | None:
    known = parts.index(None) if None in parts else len(parts)
    return ".".join(map(str, parts[:known])) or None


def _rejected(name: str, reason: str) -> Values:
    return (name, None, None, [reason], None, None, *_NOTHING)


def _host(logged: str | None, asked: str) -> str | None:
    """Return the name of a host as logged, or else in the URL that was asked for; clients make up others."""
    host = logged if logged and logged != "-" else asked
    name = _PORT.sub("", host.lower()) if host else ""
    return name if name and _HOST.match(name) else None


def _bytes(logged: str) -> int:
    # HAProxy writes a sign before the bytes so far.
    digits = logged if logged.isdecimal() else logged.removeprefix("+")
    return int(digits) if digits.isdecimal() and len(digits) <= _MOST_DIGITS else 0


def _is_asset(path: str) -> bool:
    _, dot, extension = path.rpartition(".")
    return path in _ASSET_PATHS or (dot == "." and extension.lower() in _ASSETS)


def _pattern(path: str) -> str:
    """Return the expression of a path: a pattern with `*` or `?` for all of it, else what it begins with."""
    pattern = re.escape(path).replace(r"\*", ".*").replace(r"\?", ".")
    return pattern + (r"\Z" if {"*", "?"} & {*path} else "")
