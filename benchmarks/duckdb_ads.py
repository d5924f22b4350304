"""The DuckDB job's SQL of ads: judged, each once, joined with the page views that name them, and counted."""

from __future__ import annotations

from benchmarks.duckdb_sql import MOST_BYTES, SHAPE, named, paths, reasons, time_of

FIELDS = ("ad_id", "page", "visit_id", "display_time", "campaign")
IDENTIFIERS = ("ad_id", "visit_id")
IDENTITY = "visit_id, ad_id, display_time"


def _broken(name: str) -> tuple[str, str]:
    at = FIELDS.index(name) + 1
    blank = f" OR trim(found[{at}], ' ') = ''" if name in IDENTIFIERS else ""
    missing = f"coalesce(kinds[{at}], 'NULL') = 'NULL'{blank}"
    return (
        f"CASE WHEN {missing} THEN 'missing_field:{name}' END",
        f"CASE WHEN kinds[{at}] NOT IN ('VARCHAR', 'NULL') THEN 'wrong_type:{name}' END",
    )


_TIME = FIELDS.index("display_time") + 1
_REASONS = reasons(
    *(case for name in FIELDS for case in _broken(name)),
    f"CASE WHEN kinds[{_TIME}] = 'VARCHAR' AND time IS NULL THEN 'invalid_time:display_time' END",
    "CASE WHEN time < TIMESTAMPTZ '2000-01-01' OR time > end_of_hour + INTERVAL 5 MINUTE THEN 'impossible_time' END",
)
_TEXTS = ", ".join(f"found[{at}] AS {name}" for at, name in enumerate(FIELDS, 1) if name != "display_time")

ADS = f"""
WITH texts AS (
    SELECT *, CASE WHEN octet_length(raw) <= {MOST_BYTES} THEN TRY(decode(raw)) END AS text FROM landed
), documents AS (
    SELECT *, CASE WHEN json_valid(text) AND json_type(text) = 'OBJECT' THEN text::JSON END AS document FROM texts
), looked AS (
    SELECT *, json_extract_string(document, {paths(FIELDS)}) AS found, json_type(document, {paths(FIELDS)}) AS kinds
    FROM documents
), timed AS (
    SELECT *, {time_of(f"found[{_TIME}]")} AS time, (part || ':00:00Z')::TIMESTAMPTZ + INTERVAL 1 HOUR AS end_of_hour
    FROM looked
), judged AS (
    SELECT *, CASE WHEN document IS NULL THEN [{SHAPE}] ELSE {_REASONS} END AS reasons FROM timed
)
SELECT raw, source_file, source_offset, part AS arrival_hour, reasons, {_TEXTS},
    CASE WHEN len(reasons) = 0 THEN time END AS display_time,
    CASE WHEN len(reasons) = 0 THEN strftime(time, '%Y-%m-%dT%H') END AS display_hour
FROM judged
"""
BRONZE = "SELECT raw, source_file, source_offset, arrival_hour, display_time, display_hour, reasons FROM ads"
DEAD_LETTERS = "SELECT raw, source_file, source_offset, arrival_hour, reasons FROM ads WHERE len(reasons) > 0"
RANKED = f"""
WITH in_order AS (
    SELECT *, row_number() OVER arrived AS rank, first_value(hash(raw)) OVER arrived AS winner
    FROM ads WHERE display_time IS NOT NULL
    WINDOW arrived AS (PARTITION BY {IDENTITY} ORDER BY arrival_hour, source_file, source_offset)
)
SELECT * EXCLUDE (reasons, winner), hash(raw) <> winner AS differs, count(*) OVER same AS occurrences,
    count(*) FILTER (hash(raw) <> winner) OVER same AS conflicts
FROM in_order WINDOW same AS (PARTITION BY {IDENTITY})
"""
SILVER = "SELECT * EXCLUDE (rank, differs) FROM displays WHERE rank = 1"
CONFLICTS = """
SELECT * EXCLUDE (rank, differs, occurrences, conflicts, page, campaign) FROM displays WHERE differs
"""
WITH_VISITS = """
WITH views AS (
    SELECT visit_id, ad_id, event_time, user_id, keep_private, page FROM enriched WHERE ad_id IS NOT NULL
), shown AS (
    SELECT visit_id, ad_id, display_time, campaign, page AS display_page FROM displays WHERE rank = 1
)
SELECT strftime(coalesce(event_time, display_time), '%Y-%m-%dT%H') AS event_hour,
    CASE WHEN event_time IS NULL THEN 'display' WHEN display_time IS NULL THEN 'event' ELSE 'both' END AS side,
    coalesce(views.visit_id, shown.visit_id) AS visit_id, coalesce(views.ad_id, shown.ad_id) AS ad_id,
    event_time, user_id, keep_private, page, display_time, campaign, display_page,
    (epoch_us(event_time) - epoch_us(display_time)) / 1000000.0::DOUBLE AS seconds_between
FROM views FULL JOIN shown ON views.visit_id = shown.visit_id AND views.ad_id = shown.ad_id
    AND event_time BETWEEN display_time AND display_time + INTERVAL 30 MINUTE
"""
_COUNTS = """count(*) FILTER (side = 'display') AS displays_alone,
    count(DISTINCT (visit_id, event_time, page)) FILTER (side = 'both') AS events,
    count(*) FILTER (side = 'event') AS events_alone, count(*) FILTER (side = 'both') AS pairs"""
STATS = f"""
WITH together AS (
    SELECT *, false AS shown FROM joined
    UNION ALL BY NAME SELECT display_hour AS event_hour, campaign, true AS shown FROM displays WHERE rank = 1
)
SELECT event_hour[1:10] AS event_date, {named("campaign")}, count(*) FILTER (shown) AS displays, {_COUNTS},
    count(DISTINCT visit_id) FILTER (side = 'both') AS visits,
    count(DISTINCT user_id) FILTER (side = 'both') AS visitors, 24 AS hours_present
FROM together GROUP BY ALL
"""
VISITORS = f"""
SELECT event_hour, {named("campaign")}, CASE WHEN side = 'both' THEN user_id END AS user_id, count(*) FROM joined
GROUP BY ALL ORDER BY event_hour, campaign
"""
AUDIENCE = f"""
SELECT counted.*, visitors
FROM (SELECT event_hour, {named("campaign")}, {_COUNTS} FROM joined GROUP BY ALL) counted
JOIN sketches USING (event_hour, campaign)
"""
