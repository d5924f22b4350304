"""From bronze to gold in plain SQL, once for both peers: in the words of Spark, of which DuckDB is told a few.

A peer provides the views `landed_users` and `landed_devices` (the newest list), `judged_visits` and `judged_ads` (lines
with the columns of valid ones, and the reasons of others), and `addresses` of what :func:`places` returns; a dataset's
name has `_` for its dot here. It trusts its input where the platform does not: users and devices are formatted as by
the simulator, whose lines are not deeply nested, whose pages have no queries, and whose visits are in every hour.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import iptocc

ISO = "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]+)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)$"
POSITION = "arrival_hour, source_file, source_offset"
USER_TIMES = ("registered_datetime", "first_connection_datetime", "last_connection_datetime")
TECHNICAL = ("browser", "browser_version", "network_type", "device_type", "device_version")
CUBE = ("device_type", "browser", "referral_host", "country")
DIMENSIONS = ("page", "referral_host", "device_type", "country")
DAY = "substring(event_hour, 1, 10) AS event_date"
WEEK = "CAST(CAST(date_trunc('week', CAST(substring(event_hour, 1, 10) AS DATE)) AS DATE) AS STRING) AS event_week"
COUNTS = "count(*) AS events, count(DISTINCT visit_id) AS visits, count(DISTINCT user_id) AS users"


class Table(NamedTuple):
    """A table, or a view if its name has no dot."""

    query: str
    partition: str | None = None


def landed(landing: Path, table: str) -> Iterator[tuple[str, Path]]:
    """Find the files of a landed table, of devices those of the newest day, each after its hour or day."""
    days = sorted((landing / table).glob("date=*"))
    for file in sorted(file for day in days[-1 if table == "devices" else 0 :] for file in day.glob("**/*.*")):
        yield "T".join(folder.name.split("=")[1] for folder in reversed(file.parents) if "=" in folder.name), file


def iso_time(text: str) -> str:
    """Read a time, or NULL."""
    return f"try_to_timestamp(CASE WHEN regexp_like({text}, '{ISO}') THEN {text} END)"


def hour_of(time: str) -> str:
    """Name the hour of a time."""
    return f"replace(substring(CAST({time} AS STRING), 1, 13), ' ', 'T')"


def named(name: str) -> str:
    """Name what has no value."""
    return f"coalesce(nullif({name}, ''), 'unknown')"


def _reason(name: str, holds: str) -> str:
    return f"slice(split('{name}', ' '), 1, CAST({holds} AS INT)) AS reasons"


def _user(name: str) -> str:
    return f"get_json_object(text, '$.{name}')"


def _unique(bronze: str, identity: str, columns: str) -> str:
    # What is compared is a hash, so that no engine sorts the lines.
    return f"""
WITH hashed AS (SELECT *, xxhash64(raw) AS payload FROM {bronze} WHERE size(reasons) = 0), in_order AS (
    SELECT *, row_number() OVER arrived AS place, first_value(payload) OVER arrived AS winner FROM hashed
    WINDOW arrived AS (PARTITION BY {identity} ORDER BY {POSITION})
), counted AS (
    SELECT *, count(*) OVER same AS occurrences, count(CASE WHEN payload <> winner THEN 1 END) OVER same AS conflicts
    FROM in_order WINDOW same AS (PARTITION BY {identity})
)
SELECT {identity}, {columns}, {POSITION}, occurrences, conflicts FROM counted WHERE place = 1
"""


def _conflicts(bronze: str, unique: str, identity: str) -> str:
    return f"""
WITH disputed AS (SELECT {identity}, {POSITION} FROM {unique} WHERE conflicts > 0), won AS (
    SELECT /*+ BROADCAST(disputed) */ {identity}, raw AS winner
    FROM {bronze} JOIN disputed USING ({identity}, {POSITION})
)
SELECT /*+ BROADCAST(won) */ {identity}, raw, {POSITION} FROM {bronze} JOIN won USING ({identity}) WHERE raw <> winner
"""


_USER_ROW = f"(login, email, {', '.join(USER_TIMES)})"
_VISIT = "event_hour, visit_id, event_time, page"
_TEXTS_OF_LOGS = ("crawler", "filtered_by", "utm", "client", "agent", "host", "method", "status")
_OF_LOGS = f"""{", ".join(f"CAST(NULL AS STRING) AS {name}" for name in _TEXTS_OF_LOGS)},
    CAST(NULL AS BIGINT) AS bytes, CAST(NULL AS BOOLEAN) AS is_asset, CAST(NULL AS BOOLEAN) AS is_feed"""
_AD = "display_hour, visit_id, ad_id, display_time"
_PAIRS = """count(CASE WHEN side = 'display' THEN 1 END) AS displays_alone,
    count(DISTINCT CASE WHEN side = 'both' THEN (visit_id, event_time, page) END) AS events,
    count(CASE WHEN side = 'event' THEN 1 END) AS events_alone, count(CASE WHEN side = 'both' THEN 1 END) AS pairs"""
TABLES: Mapping[str, Table] = {
    "bronze.users": Table(
        f"""
WITH looked AS (SELECT *, {_user("id")} AS id FROM landed_users)
SELECT raw, source_file, source_offset, part AS load_date, id, {_user("login")} AS login, {_user("email")} AS email,
    {", ".join(f"{iso_time(_user(name))} AS {name}" for name in USER_TIMES)},
    to_timestamp(CAST(NULL AS STRING)) AS updated_at, CAST(NULL AS BOOLEAN) AS is_deleted,
    {_reason("missing_field:id", "id IS NULL")}
FROM looked
""",
        "load_date",
    ),
    "silver.identities": Table(
        "SELECT login, email, count(*) AS snapshots FROM bronze_users WHERE size(reasons) = 0 GROUP BY id, login, email"
    ),
    "user_snapshots": Table(
        """
WITH usable AS (
    SELECT *, row_number() OVER (PARTITION BY id, load_date ORDER BY source_file, source_offset) AS place,
        count(*) OVER (PARTITION BY id, load_date) AS received
    FROM bronze_users WHERE size(reasons) = 0
), days AS (
    SELECT load_date, row_number() OVER by_day AS number, lead(load_date) OVER by_day AS following
    FROM (SELECT DISTINCT load_date FROM bronze_users WHERE size(reasons) = 0) WINDOW by_day AS (ORDER BY load_date)
)
SELECT * FROM usable JOIN days USING (load_date) WHERE place = 1
"""
    ),
    "silver.users": Table(
        f"""
WITH compared AS (
    SELECT *, lag(number) OVER runs IS NULL OR lag(number) OVER runs < number - 1
        OR (login, email, registered_datetime)
            IS DISTINCT FROM lag((login, email, registered_datetime)) OVER runs AS starts
    FROM user_snapshots WINDOW runs AS (PARTITION BY id ORDER BY load_date)
), numbered AS (
    SELECT *, count(CASE WHEN starts THEN 1 END) OVER (PARTITION BY id ORDER BY load_date) AS version FROM compared
)
SELECT id AS user_id,
    {", ".join(f"max_by({name}, load_date) AS {name}" for name in ("login", "email", *USER_TIMES))},
    least(to_timestamp(min(load_date) || 'T00:00:00Z'), min(CASE WHEN number = 1 THEN registered_datetime END))
        AS valid_from,
    to_timestamp(max_by(following, load_date) || 'T00:00:00Z') AS valid_to,
    max_by(following, load_date) IS NULL AS is_current, CAST(sum(received) AS BIGINT) AS snapshots
FROM numbered GROUP BY id, version
"""
    ),
    "silver.users_current": Table(
        f"""
WITH compared AS (
    SELECT *, CASE WHEN lag(number) OVER runs IS NULL OR lag(number) OVER runs < number - 1
        OR {_USER_ROW} IS DISTINCT FROM lag({_USER_ROW}) OVER runs THEN load_date END AS changed
    FROM user_snapshots WINDOW runs AS (PARTITION BY id ORDER BY load_date)
), newest AS (
    SELECT *, max(changed) OVER (PARTITION BY id ORDER BY load_date) AS changed_on FROM compared
)
SELECT id AS user_id, login, email, {", ".join(USER_TIMES)}, changed_on, received AS occurrences
FROM newest WHERE following IS NULL
"""
    ),
    "bronze.devices": Table(
        f"""
SELECT raw, source_file, source_offset, part AS load_date,
    CASE WHEN source_offset > 0 THEN split_part(text, ';', 1) END AS type,
    CASE WHEN source_offset > 0 THEN split_part(text, ';', 2) END AS full_name,
    CASE WHEN source_offset > 0 THEN split_part(text, ';', 3) END AS version,
    {_reason("header", "source_offset = 0")}
FROM landed_devices
"""
    ),
    "silver.devices": Table(
        """
SELECT type AS device_type, version AS device_version, min_by(full_name, source_offset) AS full_name,
    count(*) AS occurrences, max(load_date) AS changed_on,
    to_timestamp(CAST(NULL AS STRING)) AS valid_from, to_timestamp(CAST(NULL AS STRING)) AS valid_to
FROM bronze_devices WHERE size(reasons) = 0 GROUP BY type, version
"""
    ),
    "bronze.visits": Table(f"SELECT *, 'json' AS format, {_OF_LOGS} FROM judged_visits", "arrival_hour"),
    "bronze.dead_letters": Table(
        """
SELECT raw, source_file, source_offset, arrival_hour, format, reasons, source_file LIKE '%/replay-%' AS replay
FROM bronze_visits WHERE size(reasons) > 0
""",
        "arrival_hour",
    ),
    "silver.late_visits": Table(
        """
WITH newest AS (
    SELECT arrival_hour, max(event_time) AS newest FROM bronze_visits WHERE event_time IS NOT NULL GROUP BY arrival_hour
), marks AS (
    SELECT arrival_hour, max(newest) OVER (
        ORDER BY arrival_hour ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) - INTERVAL 15 MINUTES AS watermark
    FROM newest
)
SELECT /*+ BROADCAST(marks) */ arrival_hour, event_hour, event_time, keep_private, watermark,
    (unix_micros(watermark) - unix_micros(event_time)) / 1e6 AS lateness_seconds, raw, source_file, source_offset
FROM bronze_visits JOIN marks USING (arrival_hour) WHERE event_time < watermark
""",
        "arrival_hour",
    ),
    "silver.visits": Table(
        _unique(
            "bronze_visits",
            _VISIT,
            f"user_id, keep_private, utm, referral, ad_id, {', '.join(TECHNICAL)}, ip, login, connected_since, format",
        ),
        "event_hour",
    ),
    "silver.visit_conflicts": Table(_conflicts("bronze_visits", "silver_visits", _VISIT), "event_hour"),
    "bronze.ads": Table("SELECT * FROM judged_ads", "arrival_hour"),
    "bronze.ad_dead_letters": Table(
        "SELECT raw, source_file, source_offset, arrival_hour, reasons FROM bronze_ads WHERE size(reasons) > 0",
        "arrival_hour",
    ),
    "silver.ads": Table(_unique("bronze_ads", _AD, "page, campaign, raw"), "display_hour"),
    "silver.ad_conflicts": Table(_conflicts("bronze_ads", "silver_ads", _AD), "display_hour"),
    "silver.visits_with_ads": Table(
        f"""
WITH views AS (SELECT * FROM silver_visits WHERE ad_id IS NOT NULL)
SELECT {hour_of("coalesce(event_time, display_time)")} AS event_hour,
    CASE WHEN event_time IS NULL THEN 'display' WHEN display_time IS NULL THEN 'event' ELSE 'both' END AS side,
    coalesce(views.visit_id, silver_ads.visit_id) AS visit_id, coalesce(views.ad_id, silver_ads.ad_id) AS ad_id,
    event_time, user_id, keep_private, views.page, display_time, campaign, silver_ads.page AS display_page,
    (unix_micros(event_time) - unix_micros(display_time)) / 1e6 AS seconds_between
FROM views FULL JOIN silver_ads ON views.visit_id = silver_ads.visit_id AND views.ad_id = silver_ads.ad_id
    AND event_time BETWEEN display_time AND display_time + INTERVAL 30 MINUTES
""",
        "event_hour",
    ),
    "gold.campaign_stats": Table(
        f"""
WITH together AS (
    SELECT event_hour, campaign, side, visit_id, event_time, page, user_id, NULL AS shown FROM silver_visits_with_ads
    UNION ALL SELECT display_hour, campaign, NULL, NULL, NULL, NULL, NULL, 1 FROM silver_ads
)
SELECT {DAY}, {named("campaign")} AS campaign, count(shown) AS displays, {_PAIRS},
    count(DISTINCT CASE WHEN side = 'both' THEN visit_id END) AS visits,
    count(DISTINCT CASE WHEN side = 'both' THEN user_id END) AS visitors, 24 AS hours_present
FROM together GROUP BY 1, 2
""",
        "event_date",
    ),
}
"""The tables that need no view `addresses`, and the views that they read, in an order in which they can be computed."""
ADDRESSES = "SELECT DISTINCT ip FROM silver_visits WHERE ip IS NOT NULL"


def places(addresses: Collection[str]) -> list[tuple[str, str, str | None]]:
    """Look addresses up by the package `iptocc`: each with the outcome and its country."""
    public = [address for address in addresses if ipaddress.ip_address(address).is_global]
    codes = dict(zip(public, iptocc.country_code(public), strict=True))
    answers = {address: ("found" if code else "unknown", code) for address, code in codes.items()}
    return [(address, *answers.get(address, ("reserved", None))) for address in addresses]


def sessions(visits: str, last_hour: str) -> str:
    """Query the state of each session in the hours at whose end it is open, and in which it is over, to a last one."""
    of_user, of_session = ("PARTITION BY user_id", "PARTITION BY user_id, number")
    order = "ORDER BY event_time, visit_id, page"
    # A list of all pages so far would make a session of thousands, a crawler's, take time by its square.
    pages = ", ".join(f"nth_value(page, {number}) OVER so_far" for number in range(1, 6))
    return f"""
WITH timed AS (
    SELECT *, source_file LIKE '%/replay-%' AS replayed,
        unix_micros(event_time) - unix_micros(lag(event_time) OVER ({of_user} {order})) AS silence
    FROM {visits}
), numbered AS (
    SELECT *, count(CASE WHEN coalesce(silence > 1800000000, true) THEN 1 END) OVER ({of_user} {order}) AS number
    FROM timed
), so_far AS (
    SELECT user_id, number, event_hour, event_time AS ended_at, page AS exit_page,
        min(event_time) OVER so_far AS started_at, count(*) OVER so_far AS pages,
        first_value(page) OVER so_far AS entry_page, first_value(referral) OVER so_far AS referral,
        bool_or(keep_private) OVER so_far AS keep_private,
        split(concat_ws(chr(31), {pages}), chr(31)) AS first_pages,
        min(struct(arrival_hour, replayed, source_file, source_offset)) OVER so_far AS appended,
        lead(event_hour) OVER (PARTITION BY user_id, number {order}) AS following
    FROM numbered
    WINDOW so_far AS ({of_session} {order} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
), states AS (
    SELECT *, pages - coalesce(lag(pages) OVER ({of_session} ORDER BY event_hour), 0) AS new,
        to_timestamp(event_hour || ':00:00Z') AS hour, date_trunc('hour', ended_at + INTERVAL 30 MINUTES) AS ending,
        to_timestamp({last_hour} || ':00:00Z') AS last
    FROM so_far WHERE following IS NULL OR following <> event_hour
), each_hour AS (
    SELECT *, explode(sequence(hour, least(to_timestamp(following || ':00:00Z') - INTERVAL 1 HOUR, ending,
        last), INTERVAL 1 HOUR)) AS moment
    FROM states
)
SELECT {hour_of("moment")} AS event_hour,
    substring(sha2(concat_ws(chr(31), appended.arrival_hour, CAST(appended.replayed AS STRING), appended.source_file,
        CAST(appended.source_offset AS STRING)), 256), 1, 32) AS session_id,
    user_id, started_at, ended_at, pages, entry_page, referral, exit_page, keep_private, first_pages, appended,
    moment = ending AS is_completed, CASE WHEN moment = hour THEN new ELSE 0 END AS new_pages
FROM each_hour
"""


def _counted(period: str, names: tuple[str, ...], more: str = "") -> Table:
    columns = ", ".join(names)
    return Table(
        f"""
WITH keyed AS (
    SELECT {DAY if period == "event_date" else WEEK}, {", ".join(f"{named(name)} AS {name}" for name in names)},
        event_hour, visit_id, user_id
    FROM silver_visits_enriched
), present AS (
    SELECT {period}, CAST(count(DISTINCT event_hour) AS INT) AS hours_present FROM keyed GROUP BY {period}
), counted AS (SELECT {period}, {columns}, {COUNTS} FROM keyed GROUP BY {period}, {columns})
SELECT *{more} FROM counted JOIN present USING ({period})
""",
        period,
    )


WITH_PLACES: Mapping[str, Table] = {
    "silver.sessions": Table(sessions("silver_visits", "(SELECT max(arrival_hour) FROM bronze_visits)"), "event_hour"),
    "silver.sessions_pending": Table("SELECT * FROM silver_sessions WHERE NOT is_completed", "event_hour"),
    "silver.places": Table("SELECT ip, outcome, country FROM addresses"),
    "silver.visits_enriched": Table(
        f"""
WITH hosts AS (
    SELECT *, lower(regexp_extract(referral, '^(?:[a-zA-Z][a-zA-Z0-9+.-]*://)?([^/:?#]+)', 1)) AS host
    FROM silver_visits
), versions AS (
    SELECT user_id AS holder, registered_datetime, valid_from, coalesce(valid_to, to_timestamp('9999-12-31T00:00:00Z'))
        AS until
    FROM silver_users
), known AS (SELECT device_type, device_version, full_name, true AS is_known FROM silver_devices)
SELECT event_hour, visit_id, event_time, user_id, keep_private, page, utm, referral, ad_id,
    coalesce(nullif(host, ''), 'direct') AS referral_host, {", ".join(TECHNICAL)}, full_name AS device_name,
    registered_datetime AS user_registered, valid_from AS user_version_from, holder IS NOT NULL AS user_known,
    coalesce(is_known, false) AS device_known, country, arrival_hour, outcome AS place_outcome
FROM hosts
LEFT JOIN versions ON user_id = holder AND valid_from <= event_time AND event_time < until
LEFT JOIN known USING (device_type, device_version)
LEFT JOIN (SELECT ip, country, outcome FROM silver_places) AS places USING (ip)
""",
        "event_hour",
    ),
    "gold.visits_cube_daily": _counted("event_date", CUBE),
    "gold.visits_cube_weekly": _counted("event_week", CUBE),
    "gold.visits_weekly": Table(
        f"""
WITH keyed AS (SELECT {WEEK}, * FROM silver_visits_enriched), present AS (
    SELECT event_week, CAST(count(DISTINCT event_hour) AS INT) AS hours_present FROM keyed GROUP BY event_week
)
SELECT event_week, visit_id, event_time, keep_private, page, ad_id, referral_host, browser, network_type, device_type,
    device_name, user_known, CASE WHEN NOT keep_private THEN user_id END AS user_id, hours_present
FROM keyed JOIN present USING (event_week)
""",
        "event_week",
    ),
    "gold.page_stats": _counted(
        "event_date", ("page",), ", CAST(events AS DOUBLE) / sum(events) OVER (PARTITION BY event_date) AS share"
    ),
    "gold.referral_stats": _counted("event_date", ("referral_host",), ", users AS visitors"),
    "gold.sessions_daily": Table(
        f"""
SELECT {DAY}, session_id, started_at, ended_at, pages, entry_page, exit_page,
    regexp_replace(regexp_replace(referral, '(?s)[?#].*', ''), '//[^/@]*@', '//') AS referral,
    (unix_micros(ended_at) - unix_micros(started_at)) / 1e6 AS seconds, pages = 1 AS bounced,
    array_join(first_pages, ' > ') AS path, keep_private, 24 AS hours_present
FROM silver_sessions WHERE is_completed
""",
        "event_date",
    ),
    "gold.audience_hourly": Table(
        f"""
WITH named AS (
    SELECT event_hour, user_id, {", ".join(f"{named(name)} AS {name}" for name in DIMENSIONS)}
    FROM silver_visits_enriched
)
SELECT event_hour,
    CASE {" ".join(f"WHEN {name} IS NOT NULL THEN '{name}'" for name in DIMENSIONS)} ELSE 'all' END AS dimension,
    coalesce({", ".join(DIMENSIONS)}, 'all') AS value, count(*) AS events, hll_sketch_agg(user_id, 12) AS visitors
FROM named
GROUP BY GROUPING SETS ((event_hour), {", ".join(f"(event_hour, {name})" for name in DIMENSIONS)})
""",
        "event_hour",
    ),
}
