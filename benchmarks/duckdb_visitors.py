"""The DuckDB job's SQL of sessions and the daily report, and its sketches of visitors, which DuckDB itself lacks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any

from datasketches import hll_sketch

LG_K = 12

STATES = """
WITH begun AS (
    SELECT place, user_id, event_time, visit_id, page,
        coalesce(event_time - lag(event_time) OVER of_user > INTERVAL 30 MINUTE, true) AS begins
    FROM visits JOIN ranked ON visits.rowid = place WHERE rank = 1
    WINDOW of_user AS (PARTITION BY user_id ORDER BY event_time, visit_id, page)
), numbered AS (
    SELECT place, count_if(begins) OVER (PARTITION BY user_id ORDER BY event_time, visit_id, page) AS number FROM begun
), fragments AS (
    SELECT user_id, number, event_hour, min(event_time) AS started_at, max(event_time) AS ended_at, count(*) AS new,
        arg_min(page, (event_time, visit_id, page)) AS entry_page, bool_or(keep_private) AS keep_private,
        arg_min_null(referral, (event_time, visit_id, page)) AS referral,
        arg_max(page, (event_time, visit_id, page)) AS exit_page,
        list(page ORDER BY event_time, visit_id, page)[:5] AS first_pages,
        min((arrival_hour, starts_with(parse_filename(source_file), 'replay-'), source_file, source_offset)) AS appended
    FROM numbered JOIN visits ON visits.rowid = place GROUP BY user_id, number, event_hour
), states AS (
    SELECT user_id, ended_at, exit_page, new, min(started_at) OVER so_far AS started_at,
        sum(new) OVER so_far AS pages, first_value(entry_page) OVER so_far AS entry_page,
        first_value(referral) OVER so_far AS referral, bool_or(keep_private) OVER so_far AS keep_private,
        flatten(list(first_pages) OVER so_far)[:5] AS first_pages, min(appended) OVER so_far AS appended,
        (event_hour || ':00:00Z')::TIMESTAMPTZ AS hour, date_trunc('hour', ended_at + INTERVAL 30 MINUTE) AS ending,
        (lead(event_hour) OVER so_far || ':00:00Z')::TIMESTAMPTZ - INTERVAL 1 HOUR AS until,
        (max(event_hour) OVER () || ':00:00Z')::TIMESTAMPTZ AS last
    FROM fragments
    WINDOW so_far AS (PARTITION BY user_id, number ORDER BY started_at ROWS UNBOUNDED PRECEDING)
), each_hour AS (
    SELECT *, unnest(generate_series(hour, least(until, ending, last), INTERVAL 1 HOUR)) AS moment FROM states
)
SELECT strftime(moment, '%Y-%m-%dT%H') AS event_hour,
    sha256(concat_ws(chr(31), appended[1], appended[2], appended[3], appended[4]))[:32] AS session_id,
    user_id, started_at, ended_at, pages::BIGINT AS pages, entry_page, referral, exit_page, keep_private, first_pages,
    {arrival_hour: appended[1], replayed: appended[2], source_file: appended[3], source_offset: appended[4]}
        AS appended, moment = ending AS is_completed, CASE WHEN moment = hour THEN new ELSE 0 END AS new_pages
FROM each_hour
"""
SESSIONS = "SELECT * EXCLUDE appended FROM sessions"
PENDING = "SELECT * EXCLUDE (is_completed, new_pages) FROM sessions WHERE NOT is_completed"
OF_DAYS = """
SELECT event_hour[1:10] AS event_date, session_id, started_at, ended_at, pages, entry_page, exit_page,
    regexp_replace(regexp_replace(referral, '(?s)[?#].*', ''), '//[^/@]*@', '//', 'g') AS referral,
    (epoch_us(ended_at) - epoch_us(started_at)) / 1000000.0::DOUBLE AS seconds, pages = 1 AS bounced,
    array_to_string(first_pages, ' > ') AS path, keep_private, 24 AS hours_present
FROM sessions WHERE is_completed
"""


def _top(metric: str, column: str) -> str:
    return f"""
SELECT event_hour[1:10] AS event_date, '{metric}' AS metric, count(*) AS value, {column} AS detail,
    'silver.visits_enriched' AS source
FROM enriched GROUP BY 1, 4 QUALIFY row_number() OVER (PARTITION BY event_date ORDER BY value DESC, detail) = 1
"""


REPORT = f"""
WITH counted AS (
    SELECT event_hour[1:10] AS event_date, count(*) AS views, count(DISTINCT visit_id) AS visits,
        count(DISTINCT user_id) AS visitors, 'silver.visits_enriched' AS source
    FROM enriched GROUP BY ALL
), figures AS (
    FROM (UNPIVOT counted ON views, visits, visitors INTO NAME metric VALUE value)
    UNION ALL BY NAME ({_top("top_page", "page")}) UNION ALL BY NAME ({_top("top_referrer", "referral_host")})
    UNION ALL BY NAME (SELECT arrival_hour[1:10] AS event_date, 'dead_letters' AS metric, count(*) AS value,
        'bronze.dead_letters' AS source FROM visits WHERE len(reasons) > 0 GROUP BY ALL)
    UNION ALL BY NAME (SELECT display_hour[1:10] AS event_date, 'ad_displays' AS metric, count(*) AS value,
        'silver.ads' AS source FROM displays WHERE rank = 1 GROUP BY ALL)
)
SELECT *, 24 AS hours_present, 1::DOUBLE AS completeness, 1::DOUBLE AS report_completeness FROM figures
"""


def visitors(dimension: str) -> str:
    """Return the query of the visitors by a dimension, in the order of its groups."""
    value = "'all'" if dimension == "all" else f"coalesce(nullif({dimension}, ''), 'unknown')"
    return f"""
SELECT event_hour, '{dimension}' AS dimension, {value} AS value, user_id, count(*) FROM enriched
GROUP BY ALL ORDER BY event_hour, value
"""


def sketched(rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """Make a sketch of each group's visitors.

    Args:
        rows: Columns of the group, a visitor or None, and the page views; in the order of the groups.

    Yields:
        Columns of the group, the page views, and the sketch.
    """
    for group, members in groupby(rows, key=itemgetter(slice(-2))):
        sketch, events = hll_sketch(LG_K), 0
        for *_, visitor, views in members:
            if visitor is not None:
                sketch.update(visitor)
            events += views
        yield (*group, events, sketch.serialize_compact())
