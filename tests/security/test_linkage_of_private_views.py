"""A private page view is joined to nothing by a role that sees no persons. Pattern: Fine-Grained Accessor for Tables.

The attack joins it to the visits, sessions and ads of others by what they have in common, as exactly as it is shown.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from pyspark.sql import functions as F

from assets.gold import sessions_daily, visits_weekly
from assets.transforms import session_rules
from blogdata.errors import ConfigurationError
from blogdata.operations.query import offer_masks
from blogdata.patterns.data_value.incremental_sessionizer import sessionize
from blogdata.patterns.security.fine_grained_accessor_for_tables import PRIVATE, Role, restricted, sight_of
from blogdata.services.config import Settings
from quality.contracts import EVERY
from quality.contracts.page_views import USER_BUCKETS

HOUR = "2026-01-05T10"
START = datetime(2026, 1, 5, 10, tzinfo=timezone.utc)
VISITORS = 40
COLUMNS = (
    "event_hour STRING, event_week STRING, event_date STRING, visit_id STRING, user_id STRING, event_time TIMESTAMP, "
    "page STRING, keep_private BOOLEAN, browser STRING, referral STRING, referral_host STRING, arrival_hour STRING, "
    "source_file STRING, source_offset BIGINT"
)
Rows = list[dict[str, Any]]


def page_views() -> list[tuple[Any, ...]]:
    """Visits of three page views each; every other visitor asks at the first or second one not to be shared."""
    return [
        (HOUR, "2026-01-05", "2026-01-05", f"visit-{number}", f"u{number}", START + timedelta(seconds=61 * number + at),
         f"/post-{number * 3 + at}", number % 4 == 1 + 2 * at, f"Browser {number}", None, "direct", HOUR,
         "visits/a.jsonl", number * 3 + at)
        for number in range(VISITORS)
        for at in range(3)
    ]  # fmt: skip


@pytest.fixture(scope="module")
def tables(spark: Any) -> dict[str, Any]:
    """The tables as they are stored, as far as somebody may join them."""
    others = ("ad_id", "network_type", "device_type", "device_name", "browser_version", "device_version", "campaign")
    visits = spark.createDataFrame(page_views(), COLUMNS).withColumns(
        {"user_known": F.lit(True), **{name: F.lit(None).cast("string") for name in others}}
    )
    sessions = sessionize(
        session_rules.page_views(visits), None, session_rules.SPEC, partitions=[HOUR, f"{HOUR[:-2]}11"]
    )
    ads = visits.withColumns({"display_time": F.col("event_time"), "display_hour": F.col("event_hour")})
    daily = sessions_daily.columns(sessions.where("is_completed").withColumn("event_date", F.lit("2026-01-05")))
    return {
        "gold.visits_weekly": visits_weekly.for_analysts(visits, USER_BUCKETS, "s" * 32).localCheckpoint(),
        "silver.visits": visits.localCheckpoint(),
        "silver.visits_enriched": visits,
        "silver.visits_with_ads": ads,
        "silver.ads": ads.drop("event_hour", "event_time", "user_id", "keep_private"),
        "silver.sessions": sessions.localCheckpoint(),
        "gold.sessions_daily": daily,
        # As it was stored before it told who asked not to be shared.
        "gold.sessions_daily (older)": daily.drop("keep_private"),
    }


def seen(tables: Mapping[str, Any], role: Role) -> dict[str, Rows]:
    """Return the rows of each table that a role sees, with the columns that it sees."""
    found = {}
    for name, frame in tables.items():
        try:
            shown = restricted(frame, EVERY[name.partition(" ")[0]], role)
        except ConfigurationError:
            continue
        found[name] = [row.asDict() for row in shown.collect()]
    return found


def led(private: Rows, others: Mapping[str, Rows]) -> dict[str, int]:
    """Count for each table the page views that lead to exactly one visit, session, path or browser in it."""
    return {
        name: max(_led(private, rows, exactly=exactly) for exactly in (True, False)) for name, rows in others.items()
    }


def _led(private: Rows, rows: Rows, *, exactly: bool) -> int:
    """Join by page and time, the whole one or its day, of page views, displays and beginnings of sessions."""

    def place(time: datetime, page: str) -> tuple[Any, str]:
        return (time if exactly else time.date(), page)

    places = defaultdict(set)
    for row in rows:
        leads = tuple(row.get(name) for name in ("visit_id", "session_id", "path", "first_pages", "browser"))
        time = row.get("event_time") or row.get("display_time") or row.get("started_at")
        page = row.get("page") or row.get("entry_page")
        if time and page and any(leads):
            places[place(time, page)].add(repr(leads))
    return sum(len(places[place(row["event_time"], row["page"])]) == 1 for row in private)


def private_of(rows: Rows) -> Rows:
    return [row for row in rows if row["keep_private"]]


def test_a_private_view_leads_everywhere_in_stored_rows(tables: Mapping[str, Any]) -> None:
    stored = {name: [row.asDict() for row in frame.collect()] for name, frame in tables.items()}
    private = private_of(stored.pop("gold.visits_weekly"))
    assert len(private) == VISITORS // 2
    # A session begins with half of them; the others are in the path of one that another page view of theirs leads to.
    assert led(private, stored) == {name: VISITORS // 4 if "sessions" in name else VISITORS // 2 for name in stored}
    assert hidden_pages() <= pages_of(stored)


def hidden_pages() -> set[str]:
    return {row[6] for row in page_views() if row[7]}


def pages_of(tables: Mapping[str, Rows]) -> set[str]:
    """Return the pages that sessions name."""
    rows = [row for name, rows in tables.items() if "sessions" in name for row in rows]
    paths = [row.get("first_pages") or (row.get("path") or "").split(" > ") for row in rows]
    return {page for path in paths for page in path if page} | {
        row[name] for row in rows for name in ("entry_page", "exit_page") if row.get(name)
    }


@pytest.mark.parametrize("role", [Role.ANALYST, Role.PARTNER])
def test_it_leads_nowhere_in_what_a_role_without_persons_sees(tables: Mapping[str, Any], role: Role) -> None:
    shown = seen(tables, role)
    private = private_of(shown.pop("gold.visits_weekly", []))
    assert len(private) == (VISITORS // 2 if role is Role.ANALYST else 0), "analysts count them"
    assert set(led(private, shown).values()) <= {0}
    # Nor is it told by the rest of its visit, which is shown: no session that this leads to has a path.
    pages = pages_of(shown)
    assert pages.isdisjoint(hidden_pages())
    assert len(pages) == (VISITORS // 2 * 3 if role is Role.ANALYST else 0), "sessions of others are as they were"
    assert role is Role.ANALYST or shown == {}, "partners see no single visitor"


def test_an_engineer_joins_all_rows_and_finds_no_user(
    spark: Any, settings: Settings, tables: Mapping[str, Any]
) -> None:
    offer_masks(spark, settings)
    shown = seen(tables, Role.ENGINEER)
    users = {row["user_id"] for name in ("silver.visits", "gold.visits_weekly") for row in shown[name]}
    assert len(users - {None}) == VISITORS
    assert users.isdisjoint({f"u{number}" for number in range(VISITORS)})


@pytest.mark.parametrize("dataset", sorted(EVERY))
def test_what_a_role_without_persons_sees_of_visitors_says_who_asked(dataset: str) -> None:
    """Else the exact time and the browser of a private page view are seen, such as in a stream of access logs."""
    contract = EVERY[dataset]
    sight, names = sight_of(contract, Role.ANALYST), {column.name for column in contract.columns}
    seen = [column for column in contract.columns if sight is not None and column.name in sight.columns]
    assert PRIVATE in names or not any(column.of_a_person for column in seen)
