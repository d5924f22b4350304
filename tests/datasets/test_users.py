"""The users' deliveries: deriving the history."""

from __future__ import annotations

import random
from datetime import datetime
from typing import Any

import pytest
from pyspark.sql import functions as F

from assets.silver import user_history
from datasets.user_rows import delivered, identified, in_utc, utc
from plans import plan_of
from quality.contracts import CONTRACTS

ROWS = (
    "load_date STRING, source_file STRING, source_offset BIGINT, id STRING, login STRING, email STRING,"
    " registered_datetime TIMESTAMP, first_connection_datetime TIMESTAMP, last_connection_datetime TIMESTAMP,"
    " reasons ARRAY<STRING>"
)
TODAY = (
    "user_id STRING, login STRING, email STRING, registered_datetime TIMESTAMP, first_connection_datetime TIMESTAMP,"
    " last_connection_datetime TIMESTAMP, changed_on STRING, occurrences BIGINT"
)


def snapshot(day: int, user: str, login: str = "l", email: str = "e", offset: int = 0, last: int | None = None) -> Any:
    registered = utc(2020, 5, 5)
    connected = None if last is None else utc(2026, 1, last)
    return (f"2026-01-{day:02}", "f", offset, user, login, email, registered, None, connected, [])


def rejected(day: int, user: str | None, *reasons: str, offset: int = 0) -> Any:
    """Make a row with a readable user id and unusable other values."""
    why = list(reasons) or ["invalid_time:last_connection_datetime"]
    return (f"2026-01-{day:02}", "f", offset, user, "unread", None, utc(2010, 1, 1), None, None, why)


def delivery(spark: Any, *rows: Any) -> Any:
    return delivered(spark.createDataFrame(list(rows), ROWS))


def versions(spark: Any, *rows: Any) -> list[Any]:
    found = user_history.history(delivery(spark, *rows)).orderBy("user_id", "valid_from")
    return in_utc(found.collect())


def today(spark: Any, before: list[Any], day: int, *rows: Any) -> list[Any]:
    known = identified(spark.createDataFrame(before, TODAY), "user_id")
    found = user_history.newest(delivery(spark, *rows), known, f"2026-01-{day:02}")
    return [tuple(row) for row in found.orderBy("user_id").collect()]


def promised(dataset: str) -> list[tuple[str, str]]:
    return [(column.name, column.type) for column in CONTRACTS[dataset].columns]


def test_a_row_without_readable_user_keeps_nobody(spark: Any) -> None:
    nobody = [rejected(2, "u", "wrong_type:id", "invalid_time:registered_datetime"), rejected(2, None, "not_json")]
    found = versions(spark, snapshot(1, "u"), snapshot(1, "x"), snapshot(2, "x"), *nobody)
    assert [(row.user_id, row.is_current) for row in found] == [("u", False), ("x", True)]
    assert today(spark, [("u", *snapshot(1, "u")[4:9], "2026-01-01", 1)], 2, *nobody) == []


def test_current_users_are_delivered_or_in_rejected_rows(spark: Any) -> None:
    was = {name: (name, *snapshot(1, name)[4:9], "2026-01-01", 1) for name in "abcd"}
    rows = [
        *(rejected(2, "a"), rejected(2, "a", offset=1)),
        *(snapshot(2, "b", offset=3), snapshot(2, "b", "other", offset=4), rejected(2, "b", offset=2)),
        snapshot(2, "c", "new"),
        rejected(2, "unknown"),
    ]
    found = today(spark, list(was.values()), 2, *rows)
    assert [(user, login, changed, times) for user, login, *_, changed, times in found] == [
        ("a", "l", "2026-01-01", 0),
        ("b", "l", "2026-01-01", 2),
        ("c", "new", "2026-01-02", 1),
    ]
    again = today(spark, list(was.values()), 2, rejected(2, "d"), snapshot(2, "d", "new", offset=1))
    assert [(user, login, times) for user, login, *_, times in again] == [("d", "new", 1)]


def test_the_history_is_the_same_however_it_is_continued(spark: Any) -> None:
    """With all columns, days without a usable row among the deliveries, and an empty merge."""
    draw = random.Random(7)
    days = sorted(draw.sample(range(1, 29), 8))
    rows = [
        rejected(day, f"u{user}", offset=offset)
        if draw.random() < 0.3 or day in days[2:3]
        else snapshot(day, f"u{user}", draw.choice("ab"), draw.choice("ef"), offset, last=draw.choice([None, 1, 2]))
        for day in days
        for user in range(20)
        for offset in range(draw.choice([0, 1, 1, 1, 2]))
    ]
    draw.shuffle(rows)
    whole = versions(spark, *rows)
    assert {(row.user_id, row.valid_from, row.valid_to, row.login, row.email) for row in whole} == by_hand(rows)
    delivered = delivery(spark, *rows)
    found: Any = None
    last: str | None = None
    ends = [days[1], days[3], days[3], days[6], days[7]]
    for begin, end in zip([0, *ends], ends, strict=False):
        part = delivered.where(F.col("load_date").between(f"2026-01-{begin + 1:02}", f"2026-01-{end:02}"))
        rows_of_both = user_history.history(part, found, last)
        # Stored as in a table: the next day's plan does not grow with the days before.
        found, last = spark.createDataFrame(rows_of_both.toArrow(), rows_of_both.schema), f"2026-01-{end:02}"
    assert in_utc(found.orderBy("user_id", "valid_from").collect()) == whole


def by_hand(rows: list[Any]) -> set[Any]:
    days = sorted({row[0] for row in rows if not row[-1]})
    first, named = {}, {(row[3], row[0]) for row in rows}
    for row in sorted((row for row in rows if not row[-1]), key=lambda row: row[2], reverse=True):
        first[row[3], row[0]] = (row[4], row[5])
    found = set()
    for user in {row[3] for row in rows}:
        start, held = None, None
        for day in [*days, None]:
            now = held if day is None or (user, day) in named else None
            now = first.get((user, day), now)
            instant = None if day is None else datetime.fromisoformat(f"{day}T00:00:00+00:00")
            if now != held or day is None:
                if held is not None:
                    found.add((user, start, instant, *held))
                start = utc(2020, 5, 5) if day == days[0] else instant
            held = now
    return found


@pytest.mark.usefixtures("usual_plans")
def test_the_history_is_one_shuffle_of_the_rows(spark: Any) -> None:
    rows = delivery(spark, snapshot(1, "u"), rejected(2, "u"))
    plan = plan_of(user_history.history(rows))
    assert plan.count("Exchange hashpartitioning") == 1
