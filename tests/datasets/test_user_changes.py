"""Changed users: judged in bronze, in the history and among the current users.

Patterns: Merger, Incremental Loader.
"""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from typing import Any

import pytest

import oracle_users
from assets.bronze import user_changes
from assets.silver import user_history
from datasets.test_users import TODAY
from datasets.user_rows import identified, in_utc, utc

ROWS = (
    "load_date STRING, source_file STRING, source_offset BIGINT, id STRING, login STRING, email STRING,"
    " registered_datetime TIMESTAMP, first_connection_datetime TIMESTAMP, last_connection_datetime TIMESTAMP,"
    " reasons ARRAY<STRING>, updated_at TIMESTAMP, is_deleted BOOLEAN"
)
REGISTERED = oracle_users.REGISTERED


class Row(oracle_users.Row):
    """A row of bronze.users."""

    def values(self) -> tuple[Any, ...]:
        name = f"users_table-{self.file}.jsonl" if self.at else f"users-{self.file}.json"
        why = ["invalid_time:last_connection_datetime"] if self.dead else []
        change = (self.at, self.deleted) if self.at else (None, None)
        place = (f"users/date=2026-01-{self.day:02}/{name}", self.offset)
        return (f"2026-01-{self.day:02}", *place, self.user, self.login, "e", REGISTERED, None, None, why, *change)


def at(day: int, hour: int, minute: int = 0) -> datetime:
    return utc(2026, 1, day, hour, minute)


def change(day: int, hour: int, user: str, login: str = "l", **more: Any) -> Row:
    return Row(day=day, user=user, login=login, at=at(day, hour), **more)


def frame(spark: Any, rows: list[Row]) -> Any:
    return identified(spark.createDataFrame([row.values() for row in rows], ROWS))


def versions(spark: Any, *rows: Row) -> list[Any]:
    found = in_utc(user_history.history(frame(spark, list(rows))).orderBy("user_id", "valid_from").collect())
    return [(one.user_id, one.login, one.valid_from, one.valid_to, one.snapshots) for one in found]


def test_merger_of_one_instant_takes_the_change_that_landed_last(spark: Any) -> None:
    """By the number of its file, not by its name, and there by its place; a delivery of the instant comes first."""
    rows = [
        change(1, 0, "a", "second", file=10),
        change(1, 0, "a", "last", file=10, offset=7),
        change(1, 0, "a", "first", file=9, offset=8),
        change(1, 0, "a", "rejected", file=11, dead=True),
        Row(day=1, user="a", login="delivered"),
    ]
    assert versions(spark, *rows) == [("a", "last", at(1, 0), None, 4)]
    before = identified(spark.createDataFrame([], TODAY), "user_id")
    (found,) = user_history.changed(frame(spark, rows[:4]), before, "2026-01-01").collect()
    assert (found.login, found.occurrences, found.is_deleted) == ("last", 3, False)


def drawn(seed: int) -> tuple[random.Random, list[Row], list[int]]:
    """Draw deliveries and changes of eight days; the first full delivery may be any of them, or none."""
    draw = random.Random(seed)
    days = sorted(draw.sample(range(1, 29), 8))
    full = [day for day in days if draw.random() < 0.5]
    rows = []
    for day in days:
        for user in (f"u{number}" for number in range(12)):
            if day in full and draw.random() < 0.8:
                rows += [
                    Row(day=day, user=user, login=draw.choice("ab"), offset=offset, dead=draw.random() < 0.2)
                    for offset in range(draw.choice([1, 1, 2]))
                ]
            for offset in range(draw.choice([0, 0, 1, 2, 3])):
                when = utc(2026, 1, day) + timedelta(hours=draw.choice([0, 0, 6, 12]))
                rows.append(
                    Row(
                        day=day,
                        user=user,
                        login=draw.choice("ab"),
                        at=when,
                        deleted=draw.random() < 0.3,
                        dead=draw.random() < 0.1,
                        file=draw.choice([1, 9, 10]),
                        offset=100 + offset,
                    )
                )
    draw.shuffle(rows)
    return draw, rows, days


@pytest.mark.parametrize("seed", [1, 2])
def test_changes_and_deliveries_give_the_versions_of_plain_python(spark: Any, seed: int) -> None:
    _, rows, _ = drawn(seed)
    expected, left_out = oracle_users.versions(rows)
    assert versions(spark, *rows) == expected
    assert user_changes.deleted(frame(spark, rows)) == left_out
    assert sum(one[-1] for one in expected) + left_out == sum(not row.dead for row in rows)
