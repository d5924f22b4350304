"""Access logs in Combined Log Format: lines to page views, page views to visits.

A line is matched once: one replacement splits it into its fields, by a character that no readable line contains.
Lines that are not page views are filtered by name: `method`, `status`, `asset`, `feed`, `crawler`, the first that
matches.

Visitors are anonymous. `user_id` is a keyed hash of address and agent. `visit_id` is a keyed hash of `user_id` and the
position of the visit's first appended line (Keyed Idempotency): a late line, whatever its time, changes no id. The
exception is a line that joins two visits: the visit appended later changes its id, and :func:`rejoined` finds the hours
it is in. A visit ends after more than 30 minutes without a page view, so it may reach into other hours:
:func:`with_visit_ids` takes the rows around the target, and :func:`touches_edge` checks whether they suffice.

Source of the format: Apache HTTP Server documentation, "Log Files".
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from assets.transforms import user_agents
from assets.transforms.json_lines import MAX_BYTES
from assets.transforms.keyed_hash import keyed_hash
from assets.transforms.visit_times import impossible
from patterns.data_value import wrapper
from patterns.error_management import dead_letter
from patterns.error_management.dead_letter import RejectRule
from patterns.error_management.filter_interceptor import Filter, first_match
from patterns.idempotency import keyed_idempotency
from patterns.ingestion.landed_lines import is_replay
from patterns.ingestion.log_splitter import PART
from quality.contracts.silver import INACTIVITY

GAP = INACTIVITY
POSITION = ("arrival_hour", "source_file", "source_offset")
FILTERS = ("method", "status", "asset", "feed", "crawler")

_SEPARATOR = "\x1f"
_QUOTED = r'"([^"\\]*+(?:\\.[^"\\]*+)*+)"'
_STAMP = r"\[(\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4})\]"
_LINE = rf"^([^\s]+) [^\s]+ [^\[]*+{_STAMP} {_QUOTED} (\d{{3}}) (?:\d+|-) {_QUOTED} {_QUOTED}\s*+\z"
_FIELDS = ("address", "stamp", "request", "status", "referrer", "agent")
_ASSETS = (
    "css|js|mjs|png|jpg|jpeg|gif|ico|svg|webp|avif|woff|woff2|ttf|otf|eot|map|mp4|webm|mp3|ogg|zip|gz|tar|tgz|jar"
    "|exe|iso|deb|rpm"
)
_ASSET_PATHS = ("/robots.txt", "/favicon.ico", "/sitemap.xml")
_FEED_PATH = r"(?:^|/)(?:feed|rss|atom)(?:/|\z)|\.(?:rss|atom)\z|(?:^|/)(?:index|atom|rss|feed)\.xml\z"
_FEED_QUERIES = ("flav=rss", "flav=atom", "feed=")
_HOST = r"^(?:[a-zA-Z][a-zA-Z0-9+.-]*://)?(?:[^/?#@\s]*@)?([A-Za-z0-9._-]+|\[[0-9a-fA-F:.]+\])(?:[:/?#]|\z)"
_ID_DIGITS = 32


def judged(lines: DataFrame) -> DataFrame:
    """Add to every log line its time, all reasons to reject it, and the filter that removes it.

    This is an action: the distinct agents that no cheaper rule decides are collected to the client first.

    Args:
        lines: raw BINARY, arrival_hour STRING, and anything else.

    Returns:
        The input with event_time TIMESTAMP, reasons ARRAY<STRING> and filtered_by STRING.
    """
    read = _with_request(_with_fields(lines))
    read = read.withColumn("event_time", F.try_to_timestamp(F.col("stamp"), F.lit("dd/MMM/yyyy:HH:mm:ss Z")))
    read = read.withColumn("reasons", dead_letter.reasons(_rules()))
    valid = F.size("reasons") == 0
    undecided = read.where(valid & first_match(_filters([])).isNull())
    spiders = user_agents.spiders(user_agents.distinct(undecided, "agent"))
    removed = F.when(valid, first_match(_filters(spiders)))
    return read.select(
        *(name for name in lines.columns if name not in ("event_time", "reasons", "filtered_by")),
        "event_time",
        "reasons",
        removed.alias("filtered_by"),
    )


def parsed(rows: DataFrame, key: str) -> DataFrame:
    """Compute the typed columns of page views; `visit_id` stays null until the rows around are known.

    This is an action: the distinct agents are collected to the client first.

    Args:
        rows: Judged rows that are visit events: raw, event_time, event_hour, and anything else.
        key: Secret to derive `user_id` with.

    Returns:
        The input with visit_id, user_id, keep_private (always true, as visitors were not asked), page, referral (the
        referring host), ad_id, ip, login, connected_since, browser, browser_version, network_type, device_type and
        device_version.
    """
    read = _with_request(_with_fields(rows))
    agents = user_agents.table(rows.sparkSession, user_agents.distinct(read, "agent"))
    nothing = F.lit(None).cast("string")
    user = keyed_hash(F.concat_ws(" ", "address", "agent"), key, "user_id")
    kept = [name for name in rows.columns if name not in ("visit_id", *agents.columns)]
    computed = {
        "visit_id": nothing,
        "user_id": F.substring(user, 1, _ID_DIGITS),
        "keep_private": F.lit(True),
        "page": F.col("path"),
        "referral": referring_host(F.col("referrer")),
        "ad_id": nothing,
        "ip": F.col("address"),
        "login": nothing,
        "connected_since": F.lit(None).cast("timestamp"),
        "network_type": nothing,
    }
    with_agents = read.drop("visit_id").join(F.broadcast(agents), on="agent", how="left")
    wrapped = wrapper.wrap(with_agents, computed, wrapper.Layout.FLAT)
    return wrapped.rows.select(*kept, *computed, *agents.columns[1:])


def referring_host(referrer: Column) -> Column:
    """Extract the referring host of a request, in lower case; null if there is none."""
    host = F.regexp_extract(referrer, _HOST, 1)
    return F.when(~referrer.isin("", "-") & (host != ""), F.lower(host))


def with_visit_ids(target: DataFrame, around: DataFrame, key: str, gap: timedelta = GAP) -> DataFrame:
    """Fill the visit ids of page views.

    Args:
        target: Rows of :func:`parsed` to fill, in whole hours.
        around: Earlier and later rows of :func:`parsed`; rows of visitors who are not in the target do no harm.
        key: Secret to derive `visit_id` with.
        gap: Silence after which a visit is over.

    Returns:
        The target's rows and columns. The ids equal those computed over all existing rows, unless
        :func:`touches_edge` is true.
    """
    visits = _keyed(_visits(target, around, target.columns, gap), key)
    return visits.where("_ours").select(*target.columns)


def rejoined(
    published: DataFrame,
    target: DataFrame,
    around: DataFrame,
    key: str,
    since: datetime | None,
    until: datetime | None,
    gap: timedelta = GAP,
) -> list[str]:
    """Find the hours with page views published under another visit id than they have now (an action).

    Args:
        published: user_id, event_time, event_hour and visit_id of the published page views around the target.
        target: As in :func:`with_visit_ids`.
        around: As in :func:`with_visit_ids`.
        key: As in :func:`with_visit_ids`.
        since: As in :func:`touches_edge`.
        until: As in :func:`touches_edge`.
        gap: As in :func:`with_visit_ids`.

    Returns:
        Keys of the hours, in order. Visits that may reach beyond the rows around are not compared.
    """
    visits = _keyed(_visits(target, around, [*_WHEN, *POSITION], gap), key)
    whole = Window.partitionBy(*_VISIT)
    if since is not None:
        visits = visits.withColumn("_began", F.min("event_time").over(whole)).where(F.col("_began") >= since + gap)
    if until is not None:
        visits = visits.withColumn("_ended", F.max("event_time").over(whole)).where(F.col("_ended") < until - gap)
    now = visits.where("NOT _ours").select(*_WHEN, F.col("visit_id").alias("_now")).distinct()
    others = published.join(now, [*_WHEN]).where(F.col("visit_id") != F.col("_now"))
    return sorted(row[0] for row in others.select("event_hour").distinct().collect())


def touches_edge(
    target: DataFrame, around: DataFrame, since: datetime | None, until: datetime | None, gap: timedelta = GAP
) -> bool:
    """Return whether a visit of the target may reach beyond the rows around it (an action).

    Args:
        target: As in :func:`with_visit_ids`.
        around: As in :func:`with_visit_ids`.
        since: First instant that `around` covers, timezone-aware; None if no rows are earlier.
        until: First instant that `around` no longer covers, timezone-aware; None if no rows are later.
        gap: As in :func:`with_visit_ids`.

    Returns:
        True if a row outside could join a visit: widen `around` and check again.
    """
    if since is None and until is None:
        return False
    began, ended = F.min("event_time"), F.max("event_time")
    before = F.lit(False) if since is None else began < F.lit(since + gap)
    after = F.lit(False) if until is None else ended >= F.lit(until - gap)
    visits = _visits(target, around, [*_WHEN, *POSITION], gap).groupBy(*_VISIT)
    reaching = visits.agg(F.bool_or("_ours").alias("_ours"), (before | after).alias("_reaches"))
    return bool(reaching.where("_ours AND _reaches").limit(1).collect())


def position() -> Column:
    """Build the position of a log line in the order in which lines were appended; it never changes.

    The file name of a log part holds when it was taken and its offset in the whole log, so the position does not depend
    on how the log was split. Other files use their hour of arrival. Corrections come last: they lie in the hours of the
    lines they replace.
    """
    part = [F.regexp_extract("source_file", PART, group) for group in (1, 2, 3)]
    is_part = part[0] != ""
    return F.struct(
        is_replay().alias("corrects"),
        F.when(is_part, part[1]).otherwise(F.col("arrival_hour")).alias("appended"),
        F.when(is_part, part[0]).otherwise(F.col("source_file")).alias("log"),
        (F.when(is_part, part[2].try_cast("bigint")).otherwise(0) + F.col("source_offset")).alias("offset"),
    )


def sessionize(page_views: DataFrame, gap: timedelta = GAP) -> DataFrame:
    """Add the time at which each page view's visit began.

    Args:
        page_views: user_id STRING, event_time TIMESTAMP, and anything else.
        gap: A visit continues until a silence is longer than this.

    Returns:
        The input with visit_start TIMESTAMP.
    """
    in_order = Window.partitionBy("user_id").orderBy("event_time")
    silence = F.unix_micros("event_time") - F.unix_micros(F.lag("event_time").over(in_order))
    begins = silence.isNull() | (silence > F.lit(gap // timedelta(microseconds=1)))
    until_here = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    marked = page_views.withColumn("_begin", F.when(begins, F.col("event_time")))
    return marked.withColumn("visit_start", F.last("_begin", ignorenulls=True).over(until_here)).drop("_begin")


_WHEN = ("user_id", "event_time")
_VISIT = ("user_id", "visit_start")


def _visits(target: DataFrame, around: DataFrame, columns: Sequence[str], gap: timedelta) -> DataFrame:
    """Add visits and positions to all rows; the rows around keep only user, time and position."""
    ours = target.select(*columns).withColumn("_ours", F.lit(True))
    others = around.select(*_WHEN, *POSITION).withColumn("_ours", F.lit(False))
    whole = ours.unionByName(others, allowMissingColumns=True)
    return sessionize(whole.withColumn("_position", position()), gap)


def _keyed(visits: DataFrame, key: str) -> DataFrame:
    keyed = keyed_idempotency.first_appended(visits, F.col("_position"), within=_VISIT, into="_first")
    first = F.concat_ws(" ", "_first.log", F.col("_first.offset").cast("string"), "user_id")
    return keyed.withColumn("visit_id", F.substring(keyed_hash(first, key, "visit_id"), 1, _ID_DIGITS))


def _with_fields(lines: DataFrame) -> DataFrame:
    """Add the fields of the format, all null if the line does not match it."""
    text = F.when(F.octet_length("raw") <= MAX_BYTES, F.col("raw").cast("string"))
    readable = F.is_valid_utf8(text) & ~text.contains(_SEPARATOR)
    marks = _SEPARATOR.join(f"${number}" for number in range(1, len(_FIELDS) + 1))
    parts = F.split(F.regexp_replace(F.when(readable, text), _LINE, marks), _SEPARATOR, -1)
    found = lines.withColumn("_parts", parts)
    found = found.withColumn("_parts", F.when(F.size("_parts") == len(_FIELDS), F.col("_parts")))
    fields = {name: F.get("_parts", F.lit(number)) for number, name in enumerate(_FIELDS)}
    return found.withColumns(fields).drop("_parts")


def _with_request(read: DataFrame) -> DataFrame:
    """Add method, path and query; a request that is not three words has an empty method."""
    words = F.split("request", " ")
    usual = F.size(words) == 3
    target = F.when(usual, F.get(words, F.lit(1))).otherwise(F.lit(""))
    mark = F.instr(target, "?")
    return read.withColumns(
        {
            "method": F.when(usual, F.get(words, F.lit(0))).otherwise(F.lit("")),
            "path": F.when(mark > 0, F.substring(target, F.lit(1), mark - 1)).otherwise(target),
            "query": F.when(mark > 0, F.substring(target, mark + 1, F.length(target))).otherwise(F.lit("")),
        }
    )


def _rules() -> list[RejectRule]:
    raw, text = F.col("raw"), F.col("raw").cast("string")
    large = F.octet_length(raw) > MAX_BYTES
    small = ~large
    empty = raw.isNull() | (small & text.rlike(r"^\s*+\z"))
    utf8 = F.is_valid_utf8(text)
    time = F.col("event_time")
    return [
        RejectRule(name="too_large", condition=large),
        RejectRule(name="empty_line", condition=empty),
        RejectRule(name="not_utf8", condition=small & ~utf8),
        RejectRule(name="not_combined_log", condition=small & utf8 & ~empty & time.isNull()),
        RejectRule(name="impossible_time", condition=impossible(time, F.col("arrival_hour"))),
    ]


def _filters(spiders: Sequence[str]) -> list[Filter]:
    path, query, agent = F.col("path"), F.col("query"), F.col("agent")
    status = F.col("status")
    feed = path.rlike(_FEED_PATH)
    for part in _FEED_QUERIES:
        feed = feed | query.contains(part)
    crawler = user_agents.bears_crawler_word(agent)
    return [
        Filter(name="method", removes=F.col("method") != "GET"),
        Filter(name="status", removes=~(status.startswith("2") | (status == "304"))),
        Filter(name="asset", removes=F.lower(path).rlike(rf"\.(?:{_ASSETS})\z") | path.isin(*_ASSET_PATHS)),
        Filter(name="feed", removes=feed),
        Filter(name="crawler", removes=crawler | agent.isin(*spiders) if spiders else crawler),
    ]
