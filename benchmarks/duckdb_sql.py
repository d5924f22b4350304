"""The SQL of the DuckDB job, equal to the hand-written PySpark script. DuckDB's time zone is UTC."""

from __future__ import annotations

ISO = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d(?::?\d\d)?)"
MOST_BYTES = 1_048_576
REQUIRED = ("visit_id", "event_time", "user_id", "page")
IDENTIFIERS = ("visit_id", "user_id")
VALUES = (
    *REQUIRED,
    *(f"context.{name}" for name in ("referral", "ad_id")),
    *(f"context.user.{name}" for name in ("ip", "login", "connected_since")),
    *(
        f"context.technical.{name}"
        for name in ("browser", "browser_version", "network_type", "device_type", "device_version")
    ),
)
TYPES = (*REQUIRED, "keep_private", "context", "context.user", "context.technical")
IDENTITY = "visit_id, event_time, page"
TECHNICAL = "browser, browser_version, network_type, device_type, device_version"


def time_of(text: str) -> str:
    return f"TRY_CAST(CASE WHEN regexp_full_match({text}, '{ISO}') THEN {text} END AS TIMESTAMPTZ)"


def paths(names: tuple[str, ...]) -> str:
    return "[" + ", ".join(f"'$.{name}'" for name in names) + "]"


def _value(name: str) -> str:
    return f"found[{VALUES.index(name) + 1}]"


def _type(name: str) -> str:
    return f"kinds[{TYPES.index(name) + 1}]"


def _missing(name: str) -> str:
    null = f"coalesce({_type(name)}, 'NULL') = 'NULL'"
    return f"({null} OR trim({_value(name)}, ' ') = '')" if name in IDENTIFIERS else null


def _wrong(name: str, right: str) -> str:
    return f"CASE WHEN {_type(name)} NOT IN ('{right}', 'NULL') THEN 'wrong_type:{name}' END"


def reasons(*cases: str) -> str:
    return f"list_filter([{', '.join(cases)}], lambda one: one IS NOT NULL)"


_FIELD_REASONS = reasons(
    *(
        case
        for name in REQUIRED
        for case in (
            f"CASE WHEN {_missing(name)} THEN 'missing_field:{name}' END",
            _wrong(name, "VARCHAR"),
        )
    ),
    _wrong("keep_private", "BOOLEAN"),
    _wrong("context", "OBJECT"),
    _wrong("context.user", "OBJECT"),
    _wrong("context.technical", "OBJECT"),
    f"CASE WHEN {_type('event_time')} = 'VARCHAR' AND time IS NULL THEN 'invalid_time:event_time' END",
    f"CASE WHEN {_value('context.user.connected_since')} IS NOT NULL AND connected_since IS NULL"
    " THEN 'invalid_time:context.user.connected_since' END",
    "CASE WHEN time < TIMESTAMPTZ '2000-01-01' OR time > end_of_hour + INTERVAL 5 MINUTE THEN 'impossible_time' END",
)
SHAPE = rf"""CASE
    WHEN octet_length(raw) > {MOST_BYTES} THEN 'too_large'
    WHEN octet_length(raw) = 0 OR regexp_full_match(text, '\s*') THEN 'empty_line'
    WHEN text IS NULL THEN 'not_utf8'
    WHEN regexp_matches(text, '^\s*\{{"') AND NOT regexp_matches(text, '\}}\s*$') THEN 'truncated'
    WHEN regexp_matches(text, '^\s*\{{') AND json_valid('[' || regexp_replace(text, '\}}\s*\{{', '}},{{', 'g') || ']')
        THEN 'several_objects'
    ELSE 'not_json' END"""

_COLUMNS = ", ".join(
    f"{_value(name)} AS {name.split('.')[-1]}" for name in VALUES if not name.endswith(("_time", "_since"))
)

VISITS = f"""
WITH texts AS (
    SELECT *, CASE WHEN octet_length(raw) <= {MOST_BYTES} THEN TRY(decode(raw)) END AS text FROM landed
), documents AS (
    SELECT *, CASE WHEN json_valid(text) AND json_type(text) = 'OBJECT' THEN text::JSON END AS document FROM texts
), looked AS (
    SELECT *, json_extract_string(document, {paths(VALUES)}) AS found, json_type(document, {paths(TYPES)}) AS kinds
    FROM documents
), timed AS (
    SELECT *, {time_of(_value("event_time"))} AS time,
        {time_of(_value("context.user.connected_since"))} AS connected_since,
        (part || ':00:00Z')::TIMESTAMPTZ + INTERVAL 1 HOUR AS end_of_hour
    FROM looked
), judged AS (
    SELECT *, CASE WHEN document IS NULL THEN [{SHAPE}] ELSE {_FIELD_REASONS} END AS reasons FROM timed
)
SELECT raw, source_file, source_offset, part AS arrival_hour, 'json' AS format, reasons,
    CASE WHEN len(reasons) = 0 THEN time END AS event_time,
    CASE WHEN len(reasons) = 0 THEN strftime(time, '%Y-%m-%dT%H') END AS event_hour,
    {_COLUMNS}, connected_since,
    coalesce(try_cast(json_extract_string(document, '$.keep_private') AS BOOLEAN), true) AS keep_private
FROM judged
"""
BRONZE_VISITS = """
SELECT raw, source_file, source_offset, arrival_hour, format, event_time, event_hour, reasons,
    NULL::VARCHAR AS crawler, NULL::VARCHAR AS filtered_by
FROM visits
"""
DEAD_LETTERS = """
SELECT raw, source_file, source_offset, arrival_hour, format, reasons,
    starts_with(parse_filename(source_file), 'replay-') AS replay
FROM visits WHERE len(reasons) > 0
"""
MARKS = """
SELECT arrival_hour, max(max(event_time)) OVER (
    ORDER BY arrival_hour ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) - $lateness AS watermark
FROM visits WHERE event_time IS NOT NULL GROUP BY arrival_hour
"""
LATE_VISITS = """
SELECT arrival_hour, event_hour, event_time, watermark,
    (epoch_us(watermark) - epoch_us(event_time)) / 1000000.0::DOUBLE AS lateness_seconds,
    raw, source_file, source_offset
FROM visits JOIN marks USING (arrival_hour) WHERE event_time < watermark
"""
RANKED = f"""
WITH hashed AS (
    SELECT rowid AS place, {IDENTITY}, arrival_hour, source_file, source_offset, hash(raw) AS payload
    FROM visits WHERE event_time IS NOT NULL
), in_order AS (
    SELECT *, row_number() OVER arrived AS rank, first_value(payload) OVER arrived AS winner FROM hashed
    WINDOW arrived AS (PARTITION BY {IDENTITY} ORDER BY arrival_hour, source_file, source_offset)
)
SELECT place, rank, payload <> winner AS conflicting, count(*) OVER same AS occurrences,
    count(*) FILTER (payload <> winner) OVER same AS conflicts
FROM in_order WINDOW same AS (PARTITION BY {IDENTITY})
"""
SILVER_VISITS = f"""
SELECT event_hour, visit_id, event_time, user_id, keep_private, page, NULL::VARCHAR AS utm, referral, ad_id,
    {TECHNICAL}, ip, login, connected_since, occurrences, conflicts, arrival_hour, source_file, source_offset, format
FROM visits JOIN ranked ON visits.rowid = place WHERE rank = 1
"""
VISIT_CONFLICTS = """
SELECT event_hour, visit_id, event_time, page, raw, arrival_hour, source_file, source_offset
FROM visits JOIN ranked ON visits.rowid = place WHERE rank > 1 AND conflicting
"""
ENRICHED = f"""
WITH hosts AS (
    SELECT visits.*, lower(regexp_extract(referral, '^(?:[a-zA-Z][a-zA-Z0-9+.-]*://)?([^/:?#]+)', 1)) AS host
    FROM visits JOIN ranked ON visits.rowid = place WHERE rank = 1
)
SELECT event_hour, visit_id, event_time, user_id, keep_private, page, NULL::VARCHAR AS utm, referral, ad_id,
    CASE WHEN length(host) > 0 THEN host ELSE 'direct' END AS referral_host, {TECHNICAL}, full_name AS device_name,
    registered_datetime AS user_registered, valid_from AS user_version_from,
    valid_from IS NOT NULL AS user_known, occurrences IS NOT NULL AS device_known,
    country, NULL::VARCHAR AS region, NULL::VARCHAR AS city, outcome AS place_outcome
FROM hosts
LEFT JOIN (SELECT user_id AS holder, registered_datetime, valid_from, valid_to FROM user_versions) ON user_id = holder
    AND valid_from <= event_time AND event_time < coalesce(valid_to, TIMESTAMPTZ '9999-12-31')
LEFT JOIN (SELECT device_type, device_version, full_name, occurrences FROM known_devices)
    USING (device_type, device_version)
LEFT JOIN (SELECT ip, country, outcome FROM places) USING (ip)
"""

USERS = f"""
WITH looked AS (
    SELECT *, decode(raw)::JSON AS document FROM landed
), found AS (
    SELECT *, document ->> 'id' AS id, document ->> 'login' AS login, document ->> 'email' AS email,
        {time_of("document ->> 'registered_datetime'")} AS registered_datetime,
        {time_of("document ->> 'first_connection_datetime'")} AS first_connection_datetime,
        {time_of("document ->> 'last_connection_datetime'")} AS last_connection_datetime
    FROM looked
)
SELECT raw, source_file, source_offset, part AS load_date, id, login, email, registered_datetime,
    first_connection_datetime, last_connection_datetime,
    {reasons("CASE WHEN id IS NULL THEN 'missing_field:id' END")} AS reasons
FROM found
"""
IDENTITIES = """
SELECT login, email, count(*)::BIGINT AS snapshots FROM users WHERE len(reasons) = 0 GROUP BY id, login, email
"""
USER_VERSIONS = """
WITH days AS (
    SELECT load_date, row_number() OVER by_day AS number, lead(load_date) OVER by_day AS following
    FROM (SELECT DISTINCT load_date FROM users WHERE len(reasons) = 0) WINDOW by_day AS (ORDER BY load_date)
), one_a_day AS (
    SELECT *, row_number() OVER (PARTITION BY id, load_date ORDER BY source_file, source_offset) AS place,
        count(*) OVER (PARTITION BY id, load_date) AS received
    FROM users WHERE len(reasons) = 0 QUALIFY place = 1
), compared AS (
    SELECT *, lag(number) OVER runs IS NULL OR lag(number) OVER runs < number - 1
        OR (login, email, registered_datetime)
            IS DISTINCT FROM lag((login, email, registered_datetime)) OVER runs AS starts
    FROM one_a_day JOIN days USING (load_date) WINDOW runs AS (PARTITION BY id ORDER BY load_date)
), numbered AS (
    SELECT *, count_if(starts) OVER (PARTITION BY id ORDER BY load_date) AS version FROM compared
)
SELECT id AS user_id, max_by(login, load_date) AS login, max_by(email, load_date) AS email,
    last(registered_datetime ORDER BY load_date) AS registered_datetime,
    last(first_connection_datetime ORDER BY load_date) AS first_connection_datetime,
    last(last_connection_datetime ORDER BY load_date) AS last_connection_datetime,
    least((min(load_date) || 'T00:00:00Z')::TIMESTAMPTZ, min(registered_datetime) FILTER (number = 1)) AS valid_from,
    (last(following ORDER BY load_date) || 'T00:00:00Z')::TIMESTAMPTZ AS valid_to,
    last(following ORDER BY load_date) IS NULL AS is_current, sum(received)::BIGINT AS snapshots
FROM numbered GROUP BY id, version
"""
USERS_CURRENT = """
WITH days AS (
    SELECT load_date, row_number() OVER (ORDER BY load_date) AS number, max(load_date) OVER () AS newest
    FROM (SELECT DISTINCT load_date FROM users WHERE len(reasons) = 0)
), one_a_day AS (
    SELECT *, count(*) OVER (PARTITION BY id, load_date) AS occurrences,
        (login, email, registered_datetime, first_connection_datetime, last_connection_datetime) AS now
    FROM users WHERE len(reasons) = 0
    QUALIFY row_number() OVER (PARTITION BY id, load_date ORDER BY source_file, source_offset) = 1
), compared AS (
    SELECT *, CASE WHEN lag(number) OVER runs IS NULL OR lag(number) OVER runs < number - 1
        OR now IS DISTINCT FROM lag(now) OVER runs THEN load_date END AS changed
    FROM one_a_day JOIN days USING (load_date) WINDOW runs AS (PARTITION BY id ORDER BY load_date)
)
SELECT id AS user_id, login, email, registered_datetime, first_connection_datetime, last_connection_datetime,
    max(changed) OVER (PARTITION BY id) AS changed_on, occurrences
FROM compared QUALIFY load_date = newest
"""
DEVICES = """
SELECT raw, source_file, source_offset, part AS load_date,
    CASE WHEN source_offset > 0 THEN split_part(decode(raw), ';', 1) END AS type,
    CASE WHEN source_offset > 0 THEN split_part(decode(raw), ';', 2) END AS full_name,
    CASE WHEN source_offset > 0 THEN split_part(decode(raw), ';', 3) END AS version,
    CASE WHEN source_offset = 0 THEN ['header'] ELSE []::VARCHAR[] END AS reasons
FROM landed QUALIFY part = max(part) OVER ()
"""
KNOWN_DEVICES = """
SELECT type AS device_type, version AS device_version, arg_min(full_name, (source_file, source_offset)) AS full_name,
    count(*) AS occurrences, max(load_date) AS changed_on,
    NULL::TIMESTAMPTZ AS valid_from, NULL::TIMESTAMPTZ AS valid_to
FROM devices WHERE len(reasons) = 0 GROUP BY ALL
"""

_COUNTS = "count(*) AS events, count(DISTINCT visit_id) AS visits, count(DISTINCT user_id) AS users"
_DAY = "event_hour[1:10] AS event_date"
_WEEK = "strftime(date_trunc('week', event_hour[1:10]::DATE), '%Y-%m-%d') AS event_week"


def named(name: str) -> str:
    return f"coalesce(nullif({name}, ''), 'unknown') AS {name}"


def _hours(key: str) -> str:
    # The simulation has visits in every hour, and all hours land.
    return f"WITH present AS (SELECT {key}, count(DISTINCT event_hour)::INT AS hours_present FROM enriched GROUP BY 1)"


def _counted(period: str, key: str, *names: str) -> str:
    return f"""
{_hours(key)}, keyed AS (SELECT {key}, {", ".join(map(named, names))}, visit_id, user_id FROM enriched)
SELECT {period}, {", ".join(names)}, {_COUNTS}, any_value(hours_present) AS hours_present
FROM keyed JOIN present USING ({period}) GROUP BY {period}, {", ".join(names)}
"""


_CUBE = ("device_type", "browser", "referral_host", "country")


GOLD = {
    "gold/visits_cube_daily": (_counted("event_date", _DAY, *_CUBE), "event_date"),
    "gold/visits_cube_weekly": (_counted("event_week", _WEEK, *_CUBE), "event_week"),
    "gold/visits_weekly": (
        f"""
{_hours(_WEEK)}, keyed AS (SELECT {_WEEK}, * FROM enriched)
SELECT event_week, visit_id, event_time, keep_private, page, ad_id, referral_host, browser, network_type, device_type,
    device_name, user_known, CASE WHEN NOT keep_private THEN user_id END AS user_id, hours_present
FROM keyed JOIN present USING (event_week)
""",
        "event_week",
    ),
    "gold/page_stats": (
        f"""
SELECT *, events::DOUBLE / sum(events) OVER (PARTITION BY event_date) AS share
FROM ({_counted("event_date", _DAY, "page")})
""",
        "event_date",
    ),
    "gold/referral_stats": (
        f"SELECT *, users AS visitors FROM ({_counted('event_date', _DAY, 'referral_host')})",
        "event_date",
    ),
}
"""Table to its query and partition column."""
