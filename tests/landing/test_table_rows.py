"""What rows of a PostgreSQL table become when they land.

Pattern: Full Loader.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from assets.bronze.reference_lines import DeviceLines
from blogdata.contract.column_types import parse_fields
from blogdata.errors import ConfigurationError
from blogdata.landing import full_loader, table_rows

DEVICE = parse_fields("type STRING, full_name STRING, version STRING")


@pytest.fixture
def source(database: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(database, autocommit=True) as connection:
        yield connection


@pytest.fixture
def reader(database: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(database) as connection:
        yield connection


@pytest.fixture
def folder(tmp_path: Path) -> Path:
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
    columns = ", ".join(f"c{at} {kind}" for at, (kind, _, _) in enumerate(TYPES))
    source.execute(f"CREATE TABLE odd ({columns})")
    source.execute(f"INSERT INTO odd VALUES ({', '.join(value for _, value, _ in TYPES)})")
    every = parse_fields(", ".join(f"c{at} BIGINT" for at in range(len(TYPES))))
    with table_rows.snapshot(reader, "odd"):
        (line,) = table_rows.read(reader, table_rows.as_json(table_rows.describe(reader, "odd", every)))
    assert [*json.loads(line).values()] == [expected for _, _, expected in TYPES]


def test_full_loader_keeps_all_digits_and_gives_texts_where_texts_are_announced(
    source: psycopg.Connection, reader: psycopg.Connection, folder: Path
) -> None:
    source.execute("CREATE TABLE devices (type text, full_name text, version numeric)")
    source.execute("INSERT INTO devices VALUES ('PC', NULL, 12345678901234567890.1230)")
    file = landed(reader, folder).file
    assert file.read_bytes() == b'{"type":"PC","full_name":null,"version":"12345678901234567890.1230"}\n'


def test_full_loader_refuses_types_that_it_does_not_adapt_by_name(
    source: psycopg.Connection, reader: psycopg.Connection
) -> None:
    kinds = "timestamp bytea interval money int4range xml point pair json[] time inet".split()
    source.execute("CREATE TYPE pair AS (one int, other int)")
    source.execute(f"CREATE TABLE odd (unread money, {', '.join(f'c{at} {kind}' for at, kind in enumerate(kinds))})")
    announced = parse_fields(", ".join(f"c{at} STRING" for at in range(len(kinds))))
    with pytest.raises(ConfigurationError) as refused, table_rows.snapshot(reader, "odd"):
        table_rows.describe(reader, "odd", announced)
    assert all(f" c{at} {kind}" in refused.value.what for at, kind in enumerate(kinds))
    assert "unread" not in refused.value.what


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ("SELECT 1", "no such table"),
        ("CREATE TABLE devices (type text, version text)", "lacks .*full_name"),
        (
            "CREATE VIEW devices AS SELECT 'a' AS type, 'secret-' || (1/(1-1))::text AS full_name, 'b' AS version",
            "SQLSTATE 22012.*\n.*table devices",
        ),
        ('CREATE TABLE "Devices" (type text, full_name text, version text)', "no such table"),
        ('CREATE TABLE devices (type text, "Full_Name" text, version text)', "lacks .* announced: full_name"),
        ('CREATE TABLE devices ("type.full_name" text, type text, version text)', "lacks .* announced: full_name"),
        ("CREATE SCHEMA other; CREATE TABLE other.devices AS SELECT 1 AS type", "schema unless that is public"),
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
    with pytest.raises(ConfigurationError, match="read-only transaction"), table_rows.snapshot(reader, "x"):
        reader.execute("INSERT INTO devices VALUES ('x')")


SETTINGS = {"extra_float_digits": "-3", "datestyle": "German, DMY", "timezone": "Asia/Tokyo", "search_path": "other"}
SETTINGS |= {"statement_timeout": "50ms", "intervalstyle": "iso_8601"}


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII", "UTF8"])
def test_full_loader_inherits_nothing_of_what_a_database_sets(
    source: psycopg.Connection, database: str, folder: Path, encoding: str
) -> None:
    source.execute("CREATE SCHEMA other")
    source.execute("CREATE TABLE other.devices AS SELECT 'wrong' AS type, '' AS full_name, '' AS version")
    source.execute(
        "CREATE VIEW public.devices AS SELECT concat('Ã¶☃', pg_sleep(0.1)) AS type, 0.1::float8 + 0.2 AS version,"
        " concat('2026-01-05'::date, ' ', '2026-01-05 10:00+00'::timestamptz, ' ', '1 day'::interval) AS full_name"
    )
    for name, value in {**SETTINGS, "client_encoding": encoding}.items():
        source.execute(f"ALTER DATABASE {source.info.dbname} SET {name} = '{value}'")
    with psycopg.connect(database) as reader:
        assert rows(landed(reader, folder).file) == [
            {"type": "Ã¶☃", "full_name": "2026-01-05 2026-01-05 10:00:00+00 1 day", "version": "0.30000000000000004"}
        ]


def test_full_loader_refuses_a_table_of_which_it_may_read_some_rows(
    source: psycopg.Connection, reader: psycopg.Connection, folder: Path
) -> None:
    role = f"r_{uuid.uuid4().hex}"
    source.execute(f"CREATE ROLE {role}")
    source.execute("CREATE TABLE shown AS SELECT 'PC' AS type, '' AS full_name, '1' AS version")
    source.execute("ALTER TABLE shown ENABLE ROW LEVEL SECURITY; CREATE POLICY pcs ON shown USING (type = 'PC')")
    source.execute("CREATE VIEW devices WITH (security_invoker) AS SELECT * FROM shown")
    source.execute("CREATE VIEW outermost WITH (security_invoker) AS SELECT * FROM devices")
    source.execute("CREATE TABLE parts (LIKE shown) PARTITION BY LIST (type); CREATE POLICY pcs ON parts USING (true)")
    source.execute("CREATE TABLE pcs PARTITION OF parts DEFAULT; ALTER TABLE parts ENABLE ROW LEVEL SECURITY")
    source.execute("CREATE TABLE own (LIKE shown); ALTER TABLE own ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY")
    source.execute(f"ALTER TABLE own OWNER TO {role}; GRANT SELECT ON shown, devices, outermost, parts TO {role}")
    reader.execute(f"SET ROLE {role}")
    reader.commit()
    secured = {"shown": "shown", "devices": "shown", "outermost": "shown", "parts": "parts", "own": "own"}
    for table, of in secured.items():
        with pytest.raises(ConfigurationError, match=f'row-level security policy for table "{of}"'):
            full_loader.land(reader, table, DEVICE, folder, folder.parents[1])
    reader.close()
    source.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")


def test_full_loader_reads_no_column_that_nobody_announced_and_any_value_of_the_others(
    source: psycopg.Connection, reader: psycopg.Connection, folder: Path
) -> None:
    unread = '"order" json, raw bytea, "A.b" money'
    source.execute(f"CREATE TABLE devices (type text, full_name json, version text, {unread})")
    odd = ['"\\u0000"', "1e200000", '{"a":\n 1,\t"a": "\\\\n\\\\\\n"}', '"é\\ud83d"']
    for at, value in enumerate(odd):
        source.execute("INSERT INTO devices VALUES (%s, %s, 'x', %s)", [str(at), value, value])
    expected = [{"type": str(at), "full_name": json.loads(value), "version": "x"} for at, value in enumerate(odd)]
    assert rows(landed(reader, folder).file) == expected


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_full_loader_lands_what_is_no_utf_8_beside_what_is(postgres_server: str, folder: Path, encoding: str) -> None:
    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(postgres_server, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0")
        try:
            with psycopg.connect(postgres_server.rpartition("/")[0] + f"/{name}", client_encoding="UTF8") as reader:
                reader.execute("CREATE TABLE devices (type text, full_name text, version text)")
                reader.execute("INSERT INTO devices VALUES ('é', 'one', '1')")
                if encoding == "SQL_ASCII":
                    reader.execute("SET client_encoding = SQL_ASCII")
                    reader.execute(b"INSERT INTO devices SELECT '\xe9', 'two', '2' FROM generate_series(1, 101)")
                reader.commit()
                found = landed(reader, folder).file.read_bytes().splitlines()
        finally:
            server.execute(f"DROP DATABASE {name} WITH (FORCE)")
    assert found[0].decode() == '{"type":"é","full_name":"one","version":"1"}'
    odd = b'{"type":{"sqlstate" : "22021"},"full_name":"two","version":"2"}'
    assert found[1:] == [odd] * (101 * (encoding == "SQL_ASCII"))


def test_full_loader_lands_a_value_that_cannot_be_read_as_what_names_its_column(
    source: psycopg.Connection, reader: psycopg.Connection, folder: Path
) -> None:
    source.execute('CREATE TABLE made AS SELECT n, format(\'{"v": "%s"}\', n) AS text FROM generate_series(-90, 90) n')
    source.execute(
        r"""UPDATE made SET text = '{"v": "\u0000"}' WHERE n IN (0, 7); UPDATE made SET text = '{' WHERE n = 8"""
    )
    source.execute(
        "CREATE VIEW devices AS SELECT n::text AS type, (60 / n)::text AS full_name, text::json ->> 'v' AS version"
        " FROM made"
    )
    load = landed(reader, folder)
    found = {row["type"]: (row["full_name"], row["version"]) for row in rows(load.file)}
    broken = {"0": ({"sqlstate": "22012"}, {"sqlstate": "22P05"}), "7": ("8", {"sqlstate": "22P05"})}
    broken["8"] = ("7", {"sqlstate": "22P02"})
    assert load.rows == 181
    assert {at: row for at, row in found.items() if at in broken} == broken
    assert all(row == (str(int(60 / int(at))), at) for at, row in found.items() if at not in broken)
    read, at = DeviceLines().of_file("devices/d.json", "2026-01-05"), DeviceLines().names.index("reasons")
    reasons = Counter(str(read(0, line)[at]) for line in load.file.read_bytes().splitlines())
    named = {"('wrong_type:full_name', 'wrong_type:version')": 1, "('wrong_type:version',)": 2}
    assert reasons == {**named, "()": 178}
    source.execute("UPDATE made SET text = '{'")
    with pytest.raises(ConfigurationError, match=r"more than 100 values of the column version .*, SQLSTATE 22P02"):
        landed(reader, folder)
