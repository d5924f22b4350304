"""What rows of a PostgreSQL table become when they land.

Pattern: Full Loader.
"""

from __future__ import annotations

import io
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from blogdata.errors import ConfigurationError
from blogdata.patterns.ingestion import full_loader, table_rows
from blogdata.publish.column_types import parse_fields

DEVICE = parse_fields("type STRING, full_name STRING, version STRING")


@pytest.fixture
def source(database: str) -> Iterator[psycopg.Connection]:
    """A connection of the database's owner."""
    with psycopg.connect(database, autocommit=True) as connection:
        yield connection


@pytest.fixture
def reader(database: str) -> Iterator[psycopg.Connection]:
    """A connection of the loader."""
    with psycopg.connect(database) as connection:
        yield connection


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a day."""
    return tmp_path / "landing" / "devices" / "date=2026-01-05"


def landed(reader: psycopg.Connection, folder: Path, **more: Any) -> full_loader.Load:
    return full_loader.land(reader, "devices", DEVICE, folder, folder.parents[1], **more)


def rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_bytes().splitlines()]


TYPES = [
    ("text", r"E'a\\b\tc\nd\re\b\f\v\"ü☃'", 'a\\b\tc\nd\re\b\f\v"ü☃'),
    ("varchar(9)", "'\\N'", "\\N"),
    ("char(4)", "'ab'", "ab"),
    ("uuid", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    ("mood", "'very \"ok\"'", 'very "ok"'),
    ("age", "7", 7),
    ("bigint", "9223372036854775807", 9223372036854775807),
    ("double precision", "0.1", 0.1),
    ("double precision", "'NaN'", "NaN"),
    ("boolean", "true", True),
    ("date", "'2026-01-05'", "2026-01-05"),
    ("timestamptz", "'2026-01-05 10:00:00.123456+02'", "2026-01-05T08:00:00.123456+00:00"),
    ("timestamptz", "'infinity'", "infinity"),
    ("json", 'E\'{"a": 1,\\n "a": 2}\'', {"a": 2}),
    ("jsonb", '\'{"a": [1, null, "\\\\"]}\'', {"a": [1, None, "\\"]}),
    ("int[]", "'{{1,2},{3,NULL}}'", [[1, 2], [3, None]]),
    ("mood[]", "ARRAY['sad']::mood[]", ["sad"]),
    ("timestamptz[]", "ARRAY['2026-01-05 10:00+00'::timestamptz]", ["2026-01-05T10:00:00+00:00"]),
    ("text", "NULL", None),
]


def test_full_loader_adapts_each_type_as_it_says(source: psycopg.Connection, reader: psycopg.Connection) -> None:
    source.execute("CREATE TYPE mood AS ENUM ('sad', 'very \"ok\"')")
    source.execute("CREATE DOMAIN age AS integer CHECK (value >= 0)")
    # As of a server, or a login, with a zone of its own.
    reader.execute("SET TIME ZONE 'Asia/Tokyo'")
    reader.commit()
    columns = ", ".join(f"c{at} {kind}" for at, (kind, _, _) in enumerate(TYPES))
    source.execute(f"CREATE TABLE odd ({columns})")
    source.execute(f"INSERT INTO odd VALUES ({', '.join(value for _, value, _ in TYPES)})")
    file = io.BytesIO()
    with table_rows.snapshot(reader):
        assert table_rows.copy(reader, table_rows.as_json(table_rows.describe(reader, "odd", ())), file) == 1
    (line,) = file.getvalue().splitlines()
    assert [*json.loads(line).values()] == [expected for _, _, expected in TYPES]


def test_full_loader_keeps_all_digits_and_gives_texts_where_texts_are_announced(
    source: psycopg.Connection, reader: psycopg.Connection, folder: Path
) -> None:
    source.execute("CREATE TABLE devices (type text, full_name text, version numeric, price numeric)")
    source.execute("INSERT INTO devices VALUES ('PC', NULL, 14.10, 12345678901234567890.1230)")
    file = landed(reader, folder).file
    assert file.read_bytes() == b'{"type":"PC","full_name":null,"version":"14.10","price":12345678901234567890.1230}\n'


@pytest.mark.parametrize(
    "kind", ["timestamp", "bytea", "interval", "money", "int4range", "xml", "point", "pair", "json[]", "time", "inet"]
)
def test_full_loader_refuses_types_that_it_does_not_adapt_by_name(
    source: psycopg.Connection, reader: psycopg.Connection, folder: Path, kind: str
) -> None:
    source.execute("CREATE TYPE pair AS (one int, other int)")
    source.execute(f"CREATE TABLE devices (type text, full_name text, version text, odd {kind})")
    with pytest.raises(ConfigurationError, match="odd ") as refused:
        landed(reader, folder)
    assert "odd type" not in str(refused.value)
    assert not list(folder.glob("[!.]*"))


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ("SELECT 1", "no such table"),
        ("CREATE TABLE devices (type text, version text)", "lacks columns that are announced: full_name"),
        (
            "CREATE VIEW devices AS SELECT 'a' AS type, 'secret-' || (1/(1-1))::text AS full_name, 'b' AS version",
            "SQLSTATE 22012",
        ),
    ],
)
def test_full_loader_says_why_a_table_cannot_be_loaded(
    source: psycopg.Connection, reader: psycopg.Connection, folder: Path, made: str, said: str
) -> None:
    source.execute(made)
    with pytest.raises(ConfigurationError, match=said) as refused:
        landed(reader, folder)
    # Without an address in the settings nobody has written the login down.
    assert reader.info.user in str(refused.value) or "lacks" in said
    assert not list(folder.glob("[!.]*"))


def test_full_loader_reads_one_state_that_does_not_mix(
    source: psycopg.Connection, database: str, reader: psycopg.Connection, folder: Path
) -> None:
    """A writer replaces all rows all the time; the naive way, one query after the other, mixes two states."""
    source.execute("CREATE TABLE devices (type text, full_name text, version text)")
    source.execute("INSERT INTO devices SELECT n, '0', '' FROM generate_series(1, 20000) n")
    done, written = threading.Event(), [0]

    def write() -> None:
        with psycopg.connect(database) as connection:
            while not done.is_set():
                connection.execute("UPDATE devices SET full_name = %s", [str(written[-1] + 1)])
                connection.commit()
                written.append(written[-1] + 1)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        seen = [{row["full_name"] for row in rows(landed(reader, folder).file)} for _ in range(4)]
        halves = []
        # Two statements of the naive way, at the default isolation.
        with psycopg.connect(database, autocommit=True) as naive:
            for half in ("<=", ">"):
                query = f"SELECT DISTINCT full_name FROM devices WHERE type::int {half} 10000"
                halves.append(naive.execute(query).fetchall())
                before = written[-1]
                while written[-1] == before:
                    time.sleep(0.01)
    finally:
        done.set()
        writer.join()
    assert all(len(state) == 1 for state in seen)
    assert halves[0] != halves[1]


def test_full_loader_lands_a_complete_delivery_or_none(
    source: psycopg.Connection, reader: psycopg.Connection, folder: Path
) -> None:
    source.execute("CREATE TABLE devices (type text, full_name text, version text)")
    source.execute("INSERT INTO devices VALUES ('PC', 'old', '1')")
    first = landed(reader, folder)
    assert (first.rows, first.changed) == (1, True)
    assert landed(reader, folder).changed is False

    def crash(file: Path) -> None:
        assert rows(file)[0]["full_name"] == "new"
        raise KeyboardInterrupt

    source.execute("UPDATE devices SET full_name = 'new'")
    (folder / "_SUCCESS").unlink()
    with pytest.raises(KeyboardInterrupt):
        landed(reader, folder, prepare=crash)
    # Old rows and no flag, as it was before.
    assert [row["full_name"] for row in rows(first.file)] == ["old"]
    assert not (folder / "_SUCCESS").exists()
    assert landed(reader, folder).changed is True
    assert [row["full_name"] for row in rows(first.file)] == ["new"]
    assert (folder / "_SUCCESS").stat().st_mtime_ns >= first.file.stat().st_mtime_ns


def test_full_loader_changes_nothing_of_the_source(source: psycopg.Connection, reader: psycopg.Connection) -> None:
    source.execute("CREATE TABLE devices (type text)")
    with pytest.raises(ConfigurationError, match="read-only transaction"), table_rows.snapshot(reader):
        reader.execute("INSERT INTO devices VALUES ('x')")
