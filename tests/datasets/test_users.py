"""Users: their history, from deliveries and changes as from instant to instant in plain Python, and the current ones.

Patterns: Merger, Incremental Loader.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import pytest
from pyspark.sql import functions as F

from assets.bronze import user_changes
from assets.silver import user_history

ROWS = (
    "load_date STRING, source_file STRING, source_offset BIGINT, id STRING, login STRING, email STRING,"
    " registered_datetime TIMESTAMP, first_connection_datetime TIMESTAMP, last_connection_datetime TIMESTAMP,"
    " reasons ARRAY<STRING>, updated_at TIMESTAMP, is_deleted BOOLEAN"
)
TODAY = (
    "user_id STRING, login STRING, email STRING, registered_datetime TIMESTAMP, first_connection_datetime TIMESTAMP,"
    " last_connection_datetime TIMESTAMP, changed_on STRING, occurrences BIGINT"
)
REGISTERED = datetime(2020, 5, 5, tzinfo=timezone.utc)
"""When all of them registered."""
DEAD = ("invalid_time:last_connection_datetime",)
Version = tuple[str, str, datetime, datetime | None, int]
"""User, login, from when, until when, and rows it stands for."""


def utc(day: int, hour: int = 0) -> datetime:
    return datetime(2026, 1, day, hour, tzinfo=timezone.utc)


@dataclass(frozen=True, kw_only=True)
class Row:
    """A row of bronze.users; without `at` it is of a full delivery."""

    day: int
    user: str | None
    login: str = "l"
    at: datetime | None = None
    deleted: bool = False
    reasons: tuple[str, ...] = ()
    file: int = 1
    offset: int = 0

    @property
    def instant(self) -> datetime:
        return self.at or utc(self.day)

    @property
    def order(self) -> tuple[Any, ...]:
        """What decides at one instant: a usable row, then a change, then the one that landed last, or first."""
        place = (self.file, self.offset) if self.at else (-self.file, -self.offset)
        return not self.reasons, self.at is not None, place

    def values(self) -> tuple[Any, ...]:
        name = f"users_table-{self.file}.jsonl" if self.at else f"users-{self.file}.json"
        change = (self.at, self.deleted) if self.at else (None, None)
        day = f"2026-01-{self.day:02}"
        place = (f"users/date={day}/{name}", self.offset)
        return (day, *place, self.user, self.login, "e", REGISTERED, None, None, list(self.reasons), *change)


def change(day: int, hour: int, user: str, login: str = "l", **more: Any) -> Row:
    return Row(day=day, user=user, login=login, at=utc(day, hour), **more)


def identified(frame: Any, user: str = "id") -> Any:
    """Add the token of what each user is called by."""
    return frame.withColumn(user_history.IDENTITY, user_history.identity_of(user, "of the tests"))


def frame(spark: Any, rows: Sequence[Row]) -> Any:
    return identified(spark.createDataFrame([row.values() for row in rows], ROWS))


def versions(history: Any) -> list[Version]:
    def in_utc(time: Any) -> Any:
        """Rows reach the client in its own time zone, without saying so."""
        return time and time.astimezone(timezone.utc)

    return [
        (row.user_id, row.login, in_utc(row.valid_from), in_utc(row.valid_to), row.snapshots)
        for row in history.orderBy("user_id", "valid_from").collect()
    ]


def today(spark: Any, before: list[Any], *rows: Row) -> list[Any]:
    """Compute the current users after the delivery of day 2: user, login, day of the change, occurrences."""
    known = identified(spark.createDataFrame(before, TODAY), "user_id")
    current = user_history.newest(frame(spark, rows), known, "2026-01-02")
    return [(row.user_id, row.login, row.changed_on, row.occurrences) for row in current.orderBy("user_id").collect()]


def known(user: str) -> tuple[Any, ...]:
    return (user, "l", "e", REGISTERED, None, None, "2026-01-01", 1)


def test_a_row_without_readable_user_keeps_nobody(spark: Any) -> None:
    unreadable = Row(day=2, user="u", reasons=("wrong_type:id", *DEAD))
    nobody = [unreadable, Row(day=2, user=None, reasons=("not_json",))]
    rows = [Row(day=1, user="u"), Row(day=1, user="x"), Row(day=2, user="x"), *nobody]
    history = versions(user_history.history(frame(spark, rows)))
    assert [(user, until is None) for user, _, _, until, _ in history] == [("u", False), ("x", True)]
    assert today(spark, [known("u")], *nobody) == []


def test_current_users_are_delivered_or_in_rejected_rows(spark: Any) -> None:
    rows = [
        *(Row(day=2, user="a", reasons=DEAD, offset=offset) for offset in (0, 1)),
        Row(day=2, user="b", reasons=DEAD, offset=2),
        *(Row(day=2, user="b", login=login, offset=offset) for login, offset in (("l", 3), ("other", 4))),
        Row(day=2, user="c", login="new"),
        Row(day=2, user="unknown", reasons=DEAD),
        *(Row(day=2, user="d", reasons=DEAD), Row(day=2, user="d", login="new", offset=1)),
    ]
    assert today(spark, [known(user) for user in "abcde"], *rows) == [
        ("a", "l", "2026-01-01", 0),
        ("b", "l", "2026-01-01", 2),
        ("c", "new", "2026-01-02", 1),
        ("d", "new", "2026-01-02", 1),
    ]


def test_merger_of_one_instant_takes_the_change_that_landed_last(spark: Any) -> None:
    """By the number of its file, not by its name, and there by its place; a delivery of the instant comes first."""
    rows = [
        change(1, 0, "a", "second", file=10),
        change(1, 0, "a", "last", file=10, offset=7),
        change(1, 0, "a", "first", file=9, offset=8),
        change(1, 0, "a", "rejected", file=11, reasons=DEAD),
        Row(day=1, user="a", login="delivered"),
    ]
    assert versions(user_history.history(frame(spark, rows))) == [("a", "last", utc(1), None, 4)]
    before = identified(spark.createDataFrame([], TODAY), "user_id")
    (row,) = user_history.changed(frame(spark, rows[:4]), before, "2026-01-01").collect()
    assert (row.login, row.occurrences, row.is_deleted) == ("last", 3, False)


def drawn(seed: int) -> list[Row]:
    """Draw deliveries and changes of eight days, the third without a usable row; the first full one may be any."""
    draw = random.Random(seed)

    def rejected(share: float) -> tuple[str, ...]:
        return DEAD if day == days[2] or draw.random() < share else ()

    days = sorted(draw.sample(range(1, 29), 8))
    full = [day for day in days if draw.random() < 0.5]
    rows = []
    for day in days:
        for user in (f"u{number}" for number in range(12)):
            if day in full and draw.random() < 0.8:
                rows += [
                    Row(
                        day=day, user=user, login=draw.choice("ab"), offset=offset, reasons=DEAD * (draw.random() < 0.2)
                    )
                    for offset in range(draw.choice([1, 1, 2]))
                ]
            for offset in range(draw.choice([0, 0, 1, 2, 3])):
                fate = {"deleted": draw.random() < 0.3, "reasons": rejected(0.1)}
                place = {"file": draw.choice([1, 9, 10]), "offset": 100 + offset}
                rows.append(change(day, draw.choice([0, 0, 6, 12]), user, draw.choice("ab"), **fate, **place))
    draw.shuffle(rows)
    return rows


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.campaign)])
def test_the_history_is_that_of_plain_python_however_it_is_continued(spark: Any, seed: int) -> None:
    rows = drawn(seed)
    expected, left_out = by_hand(rows)
    landed = frame(spark, rows)
    assert versions(user_history.history(landed)) == expected
    assert user_changes.deleted(landed) == left_out
    assert sum(version[-1] for version in expected) + left_out == sum(not row.reasons for row in rows)
    first = min(row.day for row in rows if not row.at and not row.reasons)
    days = sorted({row.day for row in rows if row.day >= first})
    ends = [days[0], days[1], days[1], days[-1]]
    history: Any = None
    for begin, end in zip([0, *ends], ends, strict=False):
        part = landed.where(F.col("load_date").between(f"2026-01-{begin + 1:02}", f"2026-01-{end:02}"))
        continued = user_history.history(part, history, f"2026-01-{begin:02}" if begin else None)
        # Stored as in a table: the next day's plan does not grow with the days before.
        history = spark.createDataFrame(continued.toArrow(), continued.schema)
    assert versions(history) == expected


def by_hand(rows: Sequence[Row]) -> tuple[list[Version], int]:
    """Follow every user from instant to instant; return the versions, and the number of rows of deleted instants."""
    usable = [row for row in rows if not row.reasons]
    deliveries = sorted({row.day for row in usable if row.at is None})
    versions, left_out = list[Version](), 0
    for user in sorted({str(row.user) for row in rows}):
        of_user = [row for row in rows if row.user == user and (row.at is None or not row.reasons)]
        of_user = [row for row in of_user if row.at or row.day in deliveries]
        held: list[Any] | None = None
        seen = False
        for instant in sorted({row.instant for row in of_user} | {utc(day) for day in deliveries}):
            now = sorted((row for row in of_user if row.instant == instant), key=lambda row: row.order)
            count = sum(not row.reasons for row in now)
            last = now[-1] if now else None
            if last is None or last.deleted:
                if held:
                    versions.append((*held[:3], instant, held[3]))
                held = None
                left_out += count
            elif not last.reasons:
                is_first = last.at is None and last.day == deliveries[0] and not seen
                if held and held[1] == last.login:
                    held[3] += count
                else:
                    if held:
                        versions.append((*held[:3], instant, held[3]))
                    held = [user, last.login, REGISTERED if is_first else instant, count]
            seen = seen or bool(now)
        if held:
            versions.append((*held[:3], None, held[3]))
    return sorted(versions, key=lambda version: (version[0], version[2])), left_out
