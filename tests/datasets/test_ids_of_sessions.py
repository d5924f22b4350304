"""The id of a session tells nobody whose it is, and stays when others are erased. Pattern: Pseudo-Anonymizer."""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from assets.silver.sessions import SPEC
from blogdata.patterns.data_value.incremental_sessionizer import APPENDED, sessionize

HOUR = "2026-01-05T09"
START = datetime(2026, 1, 5, 9, tzinfo=timezone.utc)
USERS = [f"u{number}" for number in range(30)]
DDL = (
    "user_id STRING, event_time TIMESTAMP, visit_id STRING, page STRING, referral STRING, keep_private BOOLEAN, "
    "arrival_hour STRING, replayed BOOLEAN, source_file STRING, source_offset BIGINT"
)


def views(*, erased: str = "") -> list[tuple[Any, ...]]:
    """Two page views of each user, in the lines of one file; whoever is erased has none."""
    return [
        (user, START + timedelta(minutes=at), f"v-{user}", f"/{at}", None, False, HOUR, False, "visits/a.jsonl", place)
        for place, (at, user) in enumerate((at, user) for at in (0, 7) for user in USERS)
        if user != erased
    ]


def sessions(spark: Any, rows: list[tuple[Any, ...]]) -> dict[str, Any]:
    """Return user to session."""
    frame = sessionize(spark.createDataFrame(rows, DDL), None, SPEC, partitions=[HOUR])
    return {row["user_id"]: row for row in frame.select("user_id", "session_id", APPENDED).collect()}


@pytest.fixture(scope="module")
def found(spark: Any) -> dict[str, Any]:
    return sessions(spark, views())


def hashed(*values: str) -> str:
    return hashlib.sha256("\x1f".join(values).encode()).hexdigest()[:32]


def tried(ids: dict[str, list[str]]) -> dict[str, str]:
    """Try all users against ids of sessions whose places are known, as an engineer sees them; return whose each is."""
    return {session: user for session, place in ids.items() for user in USERS if hashed(user, *place) == session}


def test_no_user_is_found_by_trying_all_against_an_id(found: dict[str, Any]) -> None:
    places = {user: ["false" if part is False else str(part) for part in row[APPENDED]] for user, row in found.items()}
    assert tried({row["session_id"]: places[user] for user, row in found.items()}) == {}
    assert {row["session_id"] for row in found.values()} == {hashed(*place) for place in places.values()}
    # With the user's id in the hash, a thousand tries tell whose all sessions are.
    named = {hashed(user, *place): place for user, place in places.items()}
    assert sorted(tried(named).values()) == sorted(USERS)


def test_ids_are_unique_and_stay_when_somebody_else_is_erased(spark: Any, found: dict[str, Any]) -> None:
    ids = {user: row["session_id"] for user, row in found.items()}
    assert len({*ids.values()}) == len(USERS)
    left = {user: row["session_id"] for user, row in sessions(spark, views(erased="u3")).items()}
    assert left == {user: session for user, session in ids.items() if user != "u3"}
