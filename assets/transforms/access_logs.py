"""Access logs in any of the known formats: lines to page views.

A line is read by the first format that fits it (:mod:`assets.transforms.log_lines`). A line that fits none is rejected,
and the reason names the nearest format and the first field that does not fit, such as `not_combined_log:time`.
Lines that are not page views are filtered by name: `comment` (`#Fields: …`), `excluded`, `method`, `status`, `asset`,
`feed`, `crawler`, the first that matches.

Who acts is a client with its agent. What it does is judged within one hour of arrival, whose lines are always judged
together: the verdict depends on no other hour, and on no run. So a crawler that reads /robots.txt in one hour is a
visitor in the next one, unless it reads the file again.

Visitors are anonymous: `user_id` is a keyed hash of client and agent. What visit a page view belongs to is decided by
:mod:`assets.transforms.visits_by_inactivity`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, reduce
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from assets.transforms import crawlers, link_campaigns, log_clients, log_lines, log_targets
from assets.transforms.json_lines import MAX_BYTES
from assets.transforms.log_clients import in_networks
from assets.transforms.visit_times import impossible, start_of
from blogdata.patterns.data_value import wrapper
from blogdata.patterns.error_management import dead_letter
from blogdata.patterns.error_management.dead_letter import RejectRule
from blogdata.patterns.error_management.filter_interceptor import Filter, first_match
from blogdata.patterns.ingestion import log_formats
from blogdata.patterns.ingestion.log_formats import LogFormats
from blogdata.patterns.security.pseudo_anonymizer import token
from blogdata.services.config import CrawlerSettings, ExcludedRequests, LogSettings

_LONGEST_AGENT = 4096
_TABLE = "agent string, browser string, browser_version string, device_type string, device_version string"


class Client(NamedTuple):
    """The parts of an agent string; None for a part it does not name. On a desktop `device_type` is the system."""

    browser: str | None
    browser_version: str | None
    device_type: str | None
    device_version: str | None


@lru_cache(maxsize=65_536)
def client_of(agent: str) -> Client:
    """Parse an agent string; characters after the first 4,096 are ignored."""
    import ua_parser

    found = ua_parser.parse(agent[:_LONGEST_AGENT])
    browser, system, device = found.user_agent, found.os, found.device
    return Client(
        browser=browser.family if browser else None,
        browser_version=_version(browser.major, browser.minor, browser.patch) if browser else None,
        device_type=device.family if device else system.family if system else None,
        device_version=_version(system.major, system.minor, system.patch) if system else None,
    )


def distinct(frame: DataFrame, agent: str) -> list[str]:
    """Collect the distinct agents of a frame to the client (an action)."""
    return [row[0] for row in frame.select(agent).where(F.col(agent).isNotNull()).distinct().collect()]


def table(spark: SparkSession, agents: Iterable[str]) -> DataFrame:
    """Build the literal table of parsed agents: agent and the columns of :class:`Client`, STRING."""
    return spark.createDataFrame([(agent, *client_of(agent)) for agent in sorted(agents)], _TABLE)


def _version(*parts: str | None) -> str | None:
    given = []
    for part in parts:
        if part is None:
            break
        given.append(part)
    return ".".join(given) or None


FILTERS = ("comment", "excluded", "method", "status", "asset", "feed", "crawler")

_ROBOTS_TXT = "/robots.txt"
_WHO = ("arrival_hour", "client", "agent")
_VERDICT = ("format", "event_time", "reasons", "crawler", "filtered_by")
_ASSETS = (
    "css|js|mjs|png|jpg|jpeg|gif|ico|svg|webp|avif|woff|woff2|ttf|otf|eot|map|mp4|webm|mp3|ogg|zip|gz|tar|tgz|jar"
    "|exe|iso|deb|rpm"
)
_ASSET_PATHS = (_ROBOTS_TXT, "/favicon.ico", "/sitemap.xml")
_FEED_PATH = r"(?:^|/)(?:feed|rss|atom)(?:/|\z)|\.(?:rss|atom)\z|(?:^|/)(?:index|atom|rss|feed)\.xml\z"
_FEED_QUERIES = ("flav=rss", "flav=atom", "feed=")


def judged(lines: DataFrame, logs: LogSettings) -> DataFrame:
    """Add to every log line its time, all reasons to reject it, its crawler, and the filter that removes it.

    This is an action: the distinct agents, and the clients that act like crawlers, are collected to the client first.
    `lines` are all lines of each hour of arrival. `format` is that of the line, or `log` if it fits none; `crawler` the
    category of a valid request's crawler, see :mod:`assets.transforms.crawlers`.
    """
    formats = log_formats.formats(logs.formats)
    read = _read(lines, logs)
    # A comment has no time: it counts in the hour in which it has arrived.
    time = F.when(_is_comment(), start_of(F.col("arrival_hour"))).otherwise(log_lines.time_of(F.col("time")))
    read = read.withColumn("event_time", time).withColumn("reasons", _reasons(formats))
    valid = F.size("reasons") == 0
    # Who is a crawler by its agent needs no look at what it does.
    read = read.withColumn("crawler", F.when(_is_declared(logs.crawlers), F.lit("other")))
    is_view = first_match(_filters(logs.exclude)).isNull()
    acting = _acting(read.where(valid), is_view, logs.crawlers)
    named = crawlers.table(lines.sparkSession, (agent for agent in acting if agent is not None))
    read = read.withColumnRenamed("crawler", "_declared").join(F.broadcast(named), on="agent", how="left")
    read = _with_acts(read, acting)
    by_act = F.when(F.col("_acts"), F.lit("other"))
    read = read.withColumn("crawler", F.coalesce("crawler", "_declared", by_act))
    return read.select(
        *(name for name in lines.columns if name not in _VERDICT),
        F.coalesce(log_lines.FORMAT, F.lit(log_formats.UNKNOWN)).alias("format"),
        "event_time",
        "reasons",
        F.when(valid, F.col("crawler")).alias("crawler"),
        F.when(valid, first_match(_filters(logs.exclude))).alias("filtered_by"),
    )


def parsed(rows: DataFrame, key: str | None, logs: LogSettings) -> DataFrame:
    """Compute the typed columns of page views; `visit_id` stays null until the rows around are known.

    This is an action: the distinct agents are collected to the client first. Without a key `user_id` is null.
    `keep_private` is true, as visitors were not asked, `referral` is the referring host, `ip` null for a host name.
    """
    read = _read(rows, logs)
    agents = table(rows.sparkSession, distinct(read, "agent"))
    nothing = F.lit(None).cast("string")
    user = nothing if key is None else token(F.concat_ws(" ", "client", "agent"), key, "user_id")
    kept = [name for name in rows.columns if name not in ("visit_id", *agents.columns)]
    computed = {
        "visit_id": nothing,
        "user_id": user,
        "keep_private": F.lit(True),
        "page": F.col("path"),
        "utm": link_campaigns.of_query(F.col("query")),
        "referral": log_targets.referring_host(F.col("referrer")),
        "ad_id": nothing,
        "ip": F.when(log_clients.is_address(F.col("client")), F.col("client")),
        "login": nothing,
        "connected_since": F.lit(None).cast("timestamp"),
        "network_type": nothing,
    }
    with_agents = read.drop("visit_id").join(F.broadcast(agents), on="agent", how="left")
    return wrapper.beside(with_agents, computed).select(*kept, *computed, *agents.columns[1:])


def requests(rows: DataFrame, formats: LogFormats) -> DataFrame:
    """Add to usable lines, page views or not, the fields of their format, method, path, query, is_asset and is_feed."""
    found = {one.name: one.removes for one in _filters(ExcludedRequests())}
    return log_targets.with_request(log_lines.with_fields(rows, formats)).withColumns(
        {"is_asset": found["asset"], "is_feed": found["feed"]}
    )


def _read(lines: DataFrame, logs: LogSettings) -> DataFrame:
    read = log_lines.with_fields(lines, log_formats.formats(logs.formats))
    found = log_clients.client(F.col("address"), F.col("forwarded"), logs.proxies)
    return log_targets.with_request(read.withColumn("client", found))


def _is_comment() -> Column:
    return F.col(log_lines.FORMAT).eqNullSafe(log_formats.COMMENT)


def _reasons(formats: LogFormats) -> Column:
    raw, text = F.col("raw"), F.col("raw").cast("string")
    large = F.octet_length(raw) > MAX_BYTES
    small = ~large
    empty = raw.isNull() | (small & text.rlike(r"^\s*+\z"))
    utf8 = F.is_valid_utf8(text)
    time = F.col("event_time")
    rules = [
        RejectRule(name="too_large", condition=large),
        RejectRule(name="empty_line", condition=empty),
        RejectRule(name="not_utf8", condition=small & ~utf8),
        RejectRule(name="impossible_time", condition=impossible(time, F.col("arrival_hour"))),
    ]
    # In a lambda: so many expressions would make the code that Spark generates for all lines too large for the JVM's
    # compiler.
    nobody = F.col("client").isNull() & ~_is_comment()
    field = F.when(nobody, "address").otherwise("time")
    unread = F.transform(F.array(text), lambda line: log_lines.misfit(line, formats, field))
    return F.when(small & utf8 & ~empty & (nobody | time.isNull()), unread).otherwise(dead_letter.reasons(rules))


def _filters(exclude: ExcludedRequests) -> list[Filter]:
    path, query = F.col("path"), F.col("query")
    status = F.col("status")
    feed = path.rlike(_FEED_PATH)
    for part in _FEED_QUERIES:
        feed = feed | query.contains(part)
    return [
        Filter(name="comment", removes=_is_comment()),
        Filter(name="excluded", removes=_excluded(exclude)),
        Filter(name="method", removes=(F.col("method") != "GET") | ~path.startswith("/")),
        Filter(name="status", removes=~(status.startswith("2") | (status == "304"))),
        Filter(name="asset", removes=F.lower(path).rlike(rf"\.(?:{_ASSETS})\z") | path.isin(*_ASSET_PATHS)),
        Filter(name="feed", removes=feed),
        Filter(name="crawler", removes=F.col("crawler").isNotNull()),
    ]


def _excluded(exclude: ExcludedRequests) -> Column:
    """Build the condition that the settings exclude a request with client, agent and path."""
    agent = F.lower("agent")
    conditions = [agent.contains(text) for text in exclude.agents]
    if exclude.paths:
        conditions.append(F.col("path").rlike("|".join(map(_pattern, exclude.paths))))
    if exclude.addresses:
        conditions.append(in_networks(F.col("client"), exclude.addresses))
    return _any(conditions)


def _is_declared(settings: CrawlerSettings) -> Column:
    """Build the condition that the settings call the client of a request a crawler."""
    networks = settings.addresses
    return _any([in_networks(F.col("client"), networks)] if networks else [])


def _acting(requests: DataFrame, is_view: Column, settings: CrawlerSettings) -> dict[str | None, list[tuple[str, str]]]:
    """Map each distinct agent, None if there is none, to the hours and clients that act like a crawler with it.

    They read /robots.txt in the hour of arrival, or view too many pages in it. This is an action.
    """
    robots = F.lit(settings.robots_txt) & (F.col("path") == _ROBOTS_TXT)
    done = requests.groupBy(*_WHO).agg(F.max(robots).alias("robots"), F.count_if(is_view).alias("views"))
    acts = F.when(F.col("robots") | (F.col("views") > settings.most_views), F.struct("arrival_hour", "client"))
    found = done.groupBy("agent").agg(F.collect_list(acts).alias("acts")).collect()
    return {row["agent"]: [(hour, client) for hour, client in row["acts"]] for row in found}


def _with_acts(requests: DataFrame, acting: Mapping[str | None, Sequence[tuple[str, str]]]) -> DataFrame:
    """Add the column `_acts`, which is true if the client acts like a crawler in the hour of arrival, and else null."""
    rows = [(hour, client, agent, True) for agent, acts in acting.items() for hour, client in acts]
    names = [f"_{name}" for name in _WHO]
    table = requests.sparkSession.createDataFrame(
        rows, ", ".join([*(f"{name} string" for name in names), "_acts boolean"])
    )
    same = reduce(Column.__and__, (F.col(name).eqNullSafe(F.col(f"_{name}")) for name in _WHO))
    return requests.join(F.broadcast(table), on=same, how="left").drop(*names)


def _pattern(path: str) -> str:
    """Return the expression of a path: a pattern with `*` or `?` for all of it, else what it begins with."""
    pattern = re.sub(r"([^\w/])", r"\\\1", path).replace(r"\*", ".*").replace(r"\?", ".")
    return f"^{pattern}" + (r"\z" if {"*", "?"} & {*path} else "")


def _any(conditions: Sequence[Column]) -> Column:
    return reduce(Column.__or__, (F.coalesce(condition, F.lit(False)) for condition in conditions), F.lit(False))
