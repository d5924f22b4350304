import json
import multiprocessing
import random
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest

from blogdata.contract.column_types import parse_fields
from blogdata.contract.partitions import Grain
from blogdata.errors import ConfigurationError
from blogdata.landing import incremental_loader
from blogdata.landing.incremental_loader import DeltaTable, Load
from blogdata.landing.lines import FILLER, UNTIMED

NOW = datetime(2026, 1, 5, 13, 30, tzinfo=timezone.utc)
Source = psycopg.Connection
FIRST, LAST = "2026-01-05T10", "2026-01-05T12"
TABLE = DeltaTable(
    name="legacy",
    delta="at",
    announced=parse_fields("id STRING, text STRING, at TIMESTAMP, is_deleted BOOLEAN"),
    line=parse_fields("id STRING, context STRUCT<text: STRING>, at STRING, is_deleted BOOLEAN"),
    prefix="legacy",
    grain=Grain.HOUR,
)
MADE = """
    CREATE TABLE legacy (id bigint, text text, at timestamptz, is_deleted boolean DEFAULT false);
    CREATE INDEX ON legacy (at)
"""


@pytest.fixture
def source(database: str) -> Iterator[Source]:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(MADE)
        yield connection


@pytest.fixture
def landed(tmp_path: Path) -> Path:
    return tmp_path / "landing" / "visits"


def add(source: Source, number: int, at: str | None, text: str = "") -> None:
    source.execute("INSERT INTO legacy VALUES (%s, %s, %s)", [number, text, at and f"2026-01-05 {at}+00"])


def load(source: Source, landed: Path, first: str = FIRST, last: str = LAST, **more: Any) -> Load:
    with psycopg.connect(source.info.dsn, password=source.info.password) as connection:
        return incremental_loader.load(
            connection, TABLE, landed, first, last, **{"now": NOW, "untimed_in": FIRST, **more}
        )


TIMED, UNTIMED_FILES = "legacy-[0-9]*", "legacy-untimed-*"


def lines(landed: Path, pattern: str = TIMED) -> list[tuple[str, dict[str, Any]]]:
    """Return the landed rows, each with its hour."""
    return [
        (file.parts[-2][5:], json.loads(line))
        for file in sorted(landed.glob(f"date=*/hour=*/{pattern}"))
        for line in file.read_bytes().splitlines()
        if line.strip(FILLER)
    ]


def numbers(landed: Path, pattern: str = TIMED) -> list[tuple[str, str]]:
    return [(hour, row["id"]) for hour, row in lines(landed, pattern)]


def test_windows_are_half_open(source: Source, landed: Path) -> None:
    """Rows that share the instant of a boundary are neither lost nor doubled, whichever windows are loaded first."""
    times = ["09:59:59.999999", "10:00", "10:59:59.999999", "11:00", "11:00", "12:59:59.999999", "13:00"]
    for number, at in enumerate(times):
        add(source, number, at)
    load(source, landed, "2026-01-05T11", "2026-01-05T12")
    load(source, landed, "2026-01-05T10", "2026-01-05T10")
    load(source, landed, "2026-01-05T10", "2026-01-05T12")
    assert numbers(landed) == [("10", "1"), ("10", "2"), ("11", "3"), ("11", "4"), ("12", "5")]
    first = {"id": "1", "context": {"text": ""}, "at": "2026-01-05T10:00:00+00:00", "is_deleted": False}
    assert lines(landed)[0][1] == first


def test_rows_land_beside_a_value_that_cannot_be_read(source: Source, landed: Path) -> None:
    for number, (at, text) in enumerate([("10:00", "a"), ("11:00", ""), ("11:10", "b"), ("12:00", "bb"), (None, "")]):
        add(source, number, at, text)
    source.execute("ALTER TABLE legacy RENAME TO made")
    source.execute("CREATE VIEW legacy AS SELECT id, (6 / length(text))::text AS text, at, is_deleted FROM made")
    assert load(source, landed).new == {FIRST: 1, "2026-01-05T11": 2, LAST: 1, UNTIMED: 1}
    broken = {"sqlstate": "22012"}
    assert [row["context"]["text"] for _, row in lines(landed)] == ["6", broken, "6", "3"]
    assert [row["context"]["text"] for _, row in lines(landed, UNTIMED_FILES)] == [broken]
    assert load(source, landed).new == {}
    source.execute("UPDATE made SET text = 'abc' WHERE id = 1")
    assert load(source, landed).new == {"2026-01-05T11": 1}
    assert [row["context"]["text"] for _, row in lines(landed, "legacy-2*")] == ["2"]


def test_the_present_day_is_read_up_to_now_and_again(source: Source, database: str, landed: Path) -> None:
    """Windows of days are half-open, too, and what has no time lands in the folder of a day."""
    source.execute("INSERT INTO legacy VALUES (1, '', '2026-01-04 23:59:59.999999+00'), (2, '', '2026-01-04 00:00+00')")
    add(source, 3, "00:00")
    add(source, 4, "15:00")
    by_day = replace(TABLE, grain=Grain.DAY)

    def day(now: datetime, first: str = "2026-01-04", last: str = "2026-01-05") -> Load:
        with psycopg.connect(database) as connection:
            return incremental_loader.load(connection, by_day, landed, first, last, now=now, untimed_in=last)

    assert day(NOW).new == {"2026-01-04": 2, "2026-01-05": 1, UNTIMED: 1}
    assert day(NOW).new == {}
    assert day(NOW + timedelta(hours=2), first="2026-01-05").rows == {"2026-01-05": 2}
    files = sorted(landed.rglob("legacy-*"))
    assert [str(file.relative_to(landed)) for file in files] == [
        "date=2026-01-04/legacy-1.jsonl",
        "date=2026-01-05/legacy-1.jsonl",
        "date=2026-01-05/legacy-2.jsonl",
        "date=2026-01-05/legacy-untimed-1.jsonl",
    ]
    assert [json.loads(line)["id"] for file in files for line in file.read_text().splitlines()] == list("21344")


def test_only_the_rows_of_the_window_are_read(source: Source, landed: Path) -> None:
    """The condition is seen on the server: an index scan that fetches the window's rows, and no scan of the table."""
    source.execute(
        "INSERT INTO legacy SELECT n, 'x', '2025-01-01 00:00+00'::timestamptz + n * interval '1 minute', false"
        " FROM generate_series(1, 20000) n"
    )
    source.execute("VACUUM ANALYZE legacy")

    def read() -> tuple[int, int]:
        source.execute("SELECT pg_stat_clear_snapshot()")
        row = source.execute("SELECT seq_tup_read, idx_tup_fetch FROM pg_stat_user_tables").fetchone()
        assert row is not None
        return row

    before = read()
    loaded = load(source, landed, "2025-01-03T05", "2025-01-03T05")
    deadline = time.monotonic() + 20
    # The server reports within a second of the end of a session.
    while (after := read()) == before and time.monotonic() < deadline:
        time.sleep(0.1)
    assert loaded.rows == {"2025-01-03T05": 60}
    assert after[0] == before[0]
    assert 60 <= after[1] - before[1] <= 120


def test_rows_that_are_committed_late_with_an_early_time_are_found(source: Source, landed: Path) -> None:
    add(source, 1, "10:10")
    with psycopg.connect(source.info.dsn, password=source.info.password) as slow:
        slow.execute("INSERT INTO legacy VALUES (2, '', '2026-01-05 10:05+00')")
        assert load(source, landed, FIRST, "2026-01-05T10").new == {"2026-01-05T10": 1}
        slow.commit()
    # The naive way continues after the newest time that was read.
    naive = source.execute("SELECT count(*) FROM legacy WHERE at > '2026-01-05 10:10+00'").fetchone()
    assert naive == (0,)
    assert load(source, landed).new == {"2026-01-05T10": 1}
    assert numbers(landed) == [("10", "1"), ("10", "2")]
    # The bound: only windows that are read again find them.
    add(source, 3, "10:06")
    assert load(source, landed, "2026-01-05T11", LAST).new == {}
    assert load(source, landed).new == {"2026-01-05T10": 1}


def test_rows_without_a_usable_time_land_apart_and_once(source: Source, landed: Path) -> None:
    add(source, 1, None)
    add(source, 2, "23:00")
    # Within what clocks may differ.
    add(source, 3, "14:00")
    add(source, 4, "12:00")
    for _ in range(3):
        loaded = load(source, landed)
    assert (loaded.rows, loaded.new) == ({LAST: 1, UNTIMED: 2}, {})
    assert numbers(landed, UNTIMED_FILES) == [("10", "2"), ("10", "1")]
    assert numbers(landed) == [("12", "4")]
    # One whose time has come is in its window, too.
    load(source, landed, last="2026-01-05T23", now=NOW + timedelta(days=1))
    assert numbers(landed) == [("12", "4"), ("14", "3"), ("23", "2")]


def test_rows_before_all_windows_are_counted(source: Source, landed: Path) -> None:
    none = ("-infinity", "infinity")
    before = ("0044-03-15 BC", "0001-01-01 00:00+00", "1970-01-01 00:00+00", "2026-01-05 09:59:59.999999+00")
    for number, at in enumerate((*none, *before)):
        source.execute("INSERT INTO legacy VALUES (%s, '', %s)", [number, at])
    for _ in range(2):
        loaded = load(source, landed, count_before=True)
    assert (loaded.rows, loaded.before, numbers(landed)) == ({UNTIMED: len(none)}, len(before), [])
    assert sorted(numbers(landed, UNTIMED_FILES)) == [("10", str(number)) for number in range(len(none))]


def test_no_file_is_overwritten_when_earlier_ones_are_removed(source: Source, landed: Path) -> None:
    """A copy under another name is not read."""
    hour = landed / "date=2026-01-05" / "hour=10"
    for number, at in ((1, None), (2, "10:00"), (3, "10:10")):
        add(source, number, at)
        load(source, landed, untimed_in="2026-01-05T08" if at is None else FIRST)
    (hour.with_name("hour=08") / f"legacy{UNTIMED}1.jsonl").unlink()
    (hour / "legacy-1.jsonl").rename(hour / "legacy-1-old.jsonl")
    add(source, 4, None)
    add(source, 5, "10:20")
    load(source, landed)
    (hour / "legacy-1-old.jsonl").unlink()
    assert sorted(numbers(landed, UNTIMED_FILES)) == [("10", "1"), ("10", "4")]
    assert sorted(numbers(landed)) == [("10", "2"), ("10", "3"), ("10", "5")]
    assert load(source, landed).new == {}


def test_a_table_without_a_usable_column_is_refused(source: Source, landed: Path) -> None:
    # A mark that is no boolean would be taken for none.
    source.execute("ALTER TABLE legacy ALTER is_deleted DROP DEFAULT, ALTER is_deleted TYPE int USING is_deleted::int")
    with pytest.raises(ConfigurationError, match="is_deleted integer, which has to be boolean"):
        load(source, landed)
    # A date is no instant: its rows would be dead letters, all of them.
    for type_ in ("date", "text"):
        source.execute(f"ALTER TABLE legacy ALTER at TYPE {type_} USING at::{type_}")
        with pytest.raises(ConfigurationError, match=f"at {type_}, which has to be timestamptz"):
            load(source, landed)
    source.execute("ALTER TABLE legacy ALTER at TYPE timestamptz USING at::timestamptz")
    source.execute("ALTER TABLE legacy DROP COLUMN is_deleted")
    with pytest.raises(ConfigurationError, match="is_deleted"):
        load(source, landed)
    assert not list(landed.rglob("legacy-*"))


INSERT = "INSERT INTO legacy VALUES (%(new)s, '', %(at)s)"
CHANGES = (
    *(INSERT, INSERT, "INSERT INTO legacy VALUES (%(new)s, '', NULL)"),
    "UPDATE legacy SET text = text || 'x', at = %(at)s WHERE id = %(old)s AND NOT is_deleted",
    "UPDATE legacy SET is_deleted = true, at = %(at)s WHERE id = %(old)s",
    "UPDATE legacy SET id = %(new)s, at = %(at)s WHERE id = %(old)s",
    "DELETE FROM legacy WHERE id = %(old)s",
)
"""What writers do: with new times, but for hard deletes."""


def _change(draw: random.Random, source: Source, new: int, slow: list[Source]) -> None:
    at = f"2026-01-05 {draw.choice(('10', '11', '12'))}:{draw.choice(('00:00', '30:00', '59:59.999999'))}+00"
    values = {"new": new, "old": draw.randint(1, new), "at": at}
    if draw.random() < 0.8:
        source.execute(draw.choice(CHANGES), values)
    elif len(slow) < 3:
        slow.append(psycopg.connect(source.info.dsn, password=source.info.password))
        slow[-1].execute(INSERT, values)
    else:
        _commit(slow.pop(0))


def _commit(connection: Source) -> None:
    connection.commit()
    connection.close()


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_every_row_is_there_once_however_often_a_load_is_killed(source: Source, landed: Path) -> None:
    draw, number, kills, slow = random.Random("5"), count(1), 0, list[Source]()
    end = time.monotonic() + 3
    while time.monotonic() < end:
        for _ in range(draw.randint(1, 40)):
            _change(draw, source, next(number), slow)
        process = multiprocessing.get_context("fork").Process(target=load, args=(source, landed))
        process.start()
        if draw.random() < 0.7:
            time.sleep(draw.uniform(0, 0.08))
            process.kill()
            kills += 1
        process.join()
    for connection in slow:
        _commit(connection)
    load(source, landed)
    assert kills > 3
    table = source.execute("SELECT id::text, text, at, is_deleted FROM legacy").fetchall()
    now = {(key, text, at and at.astimezone(timezone.utc).isoformat(), gone) for key, text, at, gone in table}
    rows = [row for _, row in [*lines(landed), *lines(landed, UNTIMED_FILES)]]
    every = [(row["id"], row["context"]["text"], row["at"], row["is_deleted"]) for row in rows]
    # Every row of the table once; besides them only earlier states of rows, and rows that are gone.
    assert now <= set(every)
    assert len(every) == len(set(every))
