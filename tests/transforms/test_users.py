"""The users' deliveries: deriving the history."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from pyspark.sql import functions as F

from assets.transforms import user_changes, users
from plans import plan_of
from quality.contracts import CONTRACTS
from transforms.user_rows import deliver, identified, in_utc, utc

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
    return identified(user_changes.with_changes(spark.createDataFrame(list(rows), ROWS)))


def versions(spark: Any, *rows: Any) -> list[Any]:
    found = users.history(delivery(spark, *rows)).orderBy("user_id", "valid_from")
    return in_utc(found.collect())


def today(spark: Any, before: list[Any], day: int, *rows: Any) -> list[Any]:
    known = identified(spark.createDataFrame(before, TODAY), "user_id")
    found = users.newest(delivery(spark, *rows), known, f"2026-01-{day:02}")
    return [tuple(row) for row in found.orderBy("user_id").collect()]


def names_and_types(frame: Any) -> list[tuple[str, str]]:
    return [(field.name, field.dataType.simpleString().upper()) for field in frame.schema.fields]


def promised(dataset: str) -> list[tuple[str, str]]:
    return [(column.name, column.type) for column in CONTRACTS[dataset].columns]


@pytest.mark.campaign
def test_all_results_have_the_columns_of_their_contracts(spark: Any) -> None:
    bronze = users.judge(deliver(spark, "{}"))
    assert names_and_types(bronze) == promised("bronze.users")
    delivered = identified(bronze)
    assert names_and_types(users.identities(delivered)) == promised("silver.identities")
    before = {name: spark.createDataFrame([], CONTRACTS[name].ddl) for name in ("silver.users", "silver.users_current")}
    of_history = users.history(delivered, before["silver.users"], "2025-12-31")
    assert names_and_types(of_history) == promised("silver.users")
    of_today = users.newest(delivered, before["silver.users_current"], "2026-01-01")
    assert names_and_types(of_today) == promised("silver.users_current")
    # Of a table that is older than the Vertical Partitioner, they also have what it still has.
    whole = [name for name, _ in names_and_types(users.history(delivered))]
    assert [name for name in whole if name not in users.CALLED] == [name for name, _ in promised("silver.users")]


@pytest.mark.campaign
def test_an_identity_is_one_combination_of_user_login_and_email(spark: Any) -> None:
    """Patterns: Vertical Partitioner, Pseudo-Anonymizer."""
    rows = [snapshot(1, "u"), snapshot(2, "u"), snapshot(2, "u", "new"), snapshot(3, "v"), snapshot(3, "v", email="")]
    rows += [(*rows[0][:5], None, *rows[0][6:]), rejected(3, "w")]
    delivered = delivery(spark, *rows)
    found = users.identities(delivered).orderBy("snapshots", "login", "email").collect()
    assert [(row.login, row.email, row.snapshots) for row in found] == [
        *(("l", None, 1), ("l", "", 1), ("l", "e", 1), ("new", "e", 1)),
        ("l", "e", 2),
    ]
    assert len({row.identity for row in found}) == 5
    (other,) = spark.createDataFrame(rows[:1], ROWS).select(users.identity_of("id", "of another deployment")).first()
    assert other not in {row.identity for row in found}, "nobody tells it without the secret"

    first, *later = ("2026-01-01", "2026-01-02", "2026-01-03")
    known = users.identities(delivered.where(F.col("load_date") == first))
    for day in later:
        known = users.added(known, users.identities(delivered.where(F.col("load_date") == day)))
    assert known.exceptAll(users.identities(delivered)).isEmpty(), "the same, delivery by delivery"


def test_only_first_delivered_users_begin_at_registration(
    spark: Any,
) -> None:
    rows = [rejected(1, "v"), snapshot(2, "u"), snapshot(3, "u"), snapshot(3, "v")]
    assert [row.valid_from for row in versions(spark, *rows)] == [utc(2020, 5, 5), utc(2026, 1, 3)]
    u, v, w = versions(spark, snapshot(1, "w"), *rows)
    assert (u.valid_from, v.valid_from, w.valid_from) == (utc(2026, 1, 2), utc(2026, 1, 3), utc(2020, 5, 5))


def test_a_row_without_readable_user_keeps_nobody(spark: Any) -> None:
    nobody = [rejected(2, "u", "wrong_type:id", "invalid_time:registered_datetime"), rejected(2, None, "not_json")]
    found = versions(spark, snapshot(1, "u"), snapshot(1, "x"), snapshot(2, "x"), *nobody)
    assert [(row.user_id, row.is_current) for row in found] == [("u", False), ("x", True)]
    assert today(spark, [("u", *snapshot(1, "u")[4:9], "2026-01-01", 1)], 2, *nobody) == []


@pytest.mark.campaign
def test_only_rejected_rows_with_readable_ids_keep_users(spark: Any) -> None:
    names = ("12", "a", "b", "id", "u1", "u2")
    before = spark.createDataFrame([(name, *[None] * 5, "2025-12-31", 1) for name in names], TODAY)
    lines: list[str | bytes] = [
        '{"id":"a',
        '{"id":"a"}{}',
        '[{"id":"a"}]',
        b'{"id":"a","login":"\xff"}',
        '{"id":12}',
        '{"id":["a"]}',
    ]
    lines += ['{"id":"a","login":"' + "x" * 1_048_576 + '"}', '{"id":"b","login":[]}']
    delivered = deliver(spark, *lines, file="u.json")
    delivered = delivered.unionByName(deliver(spark, "id;login", "u1", "u1;x;y", 'u1;"x', file="u.csv"))
    delivered = delivered.unionByName(deliver(spark, "id;registered_datetime", "u2;yesterday", file="v.csv"))
    rows = identified(users.judge(delivered))
    kept = users.newest(rows, before, "2026-01-01").collect()
    assert sorted(row.user_id for row in kept) == ["b", "u2"]


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


def test_the_history_equals_a_daily_derivation(spark: Any) -> None:
    draw = random.Random(7)
    rows = [
        rejected(day, f"u{user}", offset=offset)
        if draw.random() < 0.3
        else snapshot(day, f"u{user}", draw.choice("ab"), draw.choice("ef"), offset)
        for day in sorted(draw.sample(range(1, 29), 15))
        for user in range(20)
        for offset in range(draw.choice([0, 1, 1, 1, 2]))
    ]
    draw.shuffle(rows)
    found = versions(spark, *rows)
    assert sum(row.snapshots for row in found) == sum(not row[-1] for row in rows)
    assert {(row.user_id, row.valid_from, row.valid_to, row.login, row.email) for row in found} == by_hand(rows)


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
        rows_of_both = users.history(part, found, last)
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
    plan = plan_of(users.history(rows))
    assert plan.count("Exchange hashpartitioning") == 1


def test_daily_versions_never_overlap(spark: Any) -> None:
    rows = [snapshot(1 + day, "u", str(day % 3)) for day in range(27)]
    found = versions(spark, *rows)
    assert len(found) == 27
    assert all(one.valid_to == two.valid_from for one, two in pairwise(found))
    assert found[-1].valid_from - found[1].valid_from == timedelta(days=25)
