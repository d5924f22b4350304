"""Roles of PostgreSQL by real logins: role, column and row. Pattern: Fine-Grained Accessor for Tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from psycopg import errors

from blogdata.contract.contract import Contract
from blogdata.contract.partitions import Grain
from blogdata.contract.schema import NOBODY, How, Partitioning, Subject, Whose
from blogdata.deliver import transactional_sink
from blogdata.deliver.transactional_sink import LOGINS, ServedTable, SinkDelivery
from blogdata.operate import postgres
from blogdata.operate.config import Settings
from blogdata.patterns.security.fine_grained_accessor_for_tables import LEAST_VISITORS, Role, Shown, sight_of
from toy import declared

SCHEMA, DAY = "serving", "2026-01-05"


HOWS = {"login": How.DIRECT, "visit_id": How.PSEUDONYM, "browser": How.QUASI_IDENTIFIER}


def contract(dataset: str, fields: str) -> Contract:
    """Declare columns, of which some identify a visitor."""
    made = declared(dataset, fields, partitioning=Partitioning(column="day", grain=Grain.DAY))
    subjects = {name: Subject(whose=Whose.VISITOR, how=how) for name, how in HOWS.items()}
    columns = (replace(column, subject=subjects.get(column.name, NOBODY)) for column in made.columns)
    return replace(made, columns=tuple(columns))


PERSONS = contract(
    "gold.persons",
    "day STRING, page STRING, login STRING, visit_id STRING, browser STRING, keep_private BOOLEAN, arrival_hour STRING",
)
COUNTS = contract("gold.counts", "day STRING, page STRING, events BIGINT, users BIGINT")
INTERNAL = replace(PERSONS, dataset="gold.internal", shared=False)
ANONYMOUS = replace(PERSONS, dataset="gold.anonymous", columns=PERSONS.columns[:2], anonymous=True)
ROWS: Mapping[str, list[dict[str, Any]]] = {
    "gold.persons": [
        {"day": DAY, "page": f"/{who}", "login": who, "visit_id": f"v-{who}", "browser": "b", "keep_private": private,
         "arrival_hour": "h"}
        for who, private in (("ada", False), ("bob", True))
    ],
    "gold.anonymous": [{"day": DAY, "page": "any"}],
    # Many page views of few visitors are not shown.
    "gold.counts": [
        {"day": DAY, "page": f"/{n}", "events": 90 - n, "users": n} for n in (LEAST_VISITORS - 1, LEAST_VISITORS)
    ],
}  # fmt: skip
CONTRACTS_HERE = (PERSONS, COUNTS, INTERNAL, ANONYMOUS)


class Logins:
    """Connections to one database, by login."""

    def __init__(self, superuser: str, passwords: Mapping[str, str]) -> None:
        self._at, self._passwords = superuser.partition("@")[2], passwords

    def __call__(self, login: str) -> psycopg.Connection:
        return psycopg.connect(f"postgresql://{login}:{self._passwords[login]}@{self._at}", autocommit=True)

    def ask(self, role: Role, query: str) -> list[tuple[Any, ...]]:
        with self(LOGINS[role]) as connection:
            return connection.execute(query.encode()).fetchall()


def deliver(connection: psycopg.Connection, version: int = 0, contracts: tuple[Contract, ...] = CONTRACTS_HERE) -> None:
    parts = []
    for contract in contracts:
        rows = ROWS.get(contract.dataset, ROWS["gold.persons"])
        batches = pa.Table.from_pylist(rows).to_batches()
        parts.append(ServedTable(contract=contract, table_id="t", version=version, rows=len(rows), batches=batches))
    transactional_sink.deliver(connection, SCHEMA, SinkDelivery(partition=DAY, parts=parts, run_id="run"))


@pytest.fixture
def logins(database: str, settings: Settings) -> Logins:
    """The logins of a database with tables that the writer has served."""
    with psycopg.connect(database, autocommit=True) as connection:
        postgres.admit(connection)
    made = Logins(database, postgres.passwords(settings))
    with made(postgres.WRITER) as writer:
        deliver(writer)
    return made


def test_each_login_sees_its_columns_of_its_rows(logins: Logins) -> None:
    for contract, role in product(CONTRACTS_HERE, LOGINS):
        sight = sight_of(contract, role)
        shown = [name for name, how in sight.columns.items() if how is Shown.AS_IT_IS] if sight else []
        least = LEAST_VISITORS if role is Role.PARTNER else 0
        # A row in which the lake would mask some columns is hidden.
        private = role is Role.ENGINEER
        rows = [
            row
            for row in ROWS.get(contract.dataset, ROWS["gold.persons"])
            if (private or not row.get("keep_private")) and row.get("users", least) >= least
        ]
        with logins(LOGINS[role]) as connection:
            for name in (column.name for column in contract.columns):
                query = f'SELECT "{name}" FROM {SCHEMA}.{contract.name}'.encode()
                if name in shown:
                    assert sorted(connection.execute(query).fetchall()) == sorted((row[name],) for row in rows)
                    continue
                with pytest.raises(errors.InsufficientPrivilege, match="permission denied for table"):
                    connection.execute(query)


LEAKS = """
SELECT * FROM serving.persons;
SELECT count(*) FROM serving.persons WHERE login = 'ada';
SELECT row_to_json(p.*)::text FROM serving.persons AS p;
SELECT page::int FROM serving.persons WHERE keep_private;
SELECT count(*) FROM serving.persons WHERE 1 / (CASE WHEN page = '/bob' THEN 0 ELSE 1 END) > 0;
SELECT count(*) FROM serving.counts WHERE 1 / (users - 4) > 0;
SELECT * FROM serving.internal;
SELECT * FROM serving.publications;
COPY serving.persons TO STDOUT;
SELECT most_common_vals FROM pg_stats WHERE tablename = 'persons';
SELECT rolpassword FROM pg_authid;
SELECT pg_read_file('PG_VERSION');
COPY (SELECT 1) TO PROGRAM 'cat';
SET ROLE blogdata_owner;
SET SESSION AUTHORIZATION blogdata;
SET row_security = off; SELECT page FROM serving.persons;
ALTER TABLE serving.persons DISABLE ROW LEVEL SECURITY;
GRANT SELECT ON serving.persons TO blogdata_partner;
CREATE TABLE public.mine (a int);
CREATE FUNCTION public.f() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT 1';
INSERT INTO serving.persons (page) VALUES ('/x');
EXPLAIN ANALYZE SELECT login FROM serving.persons
"""


HIDDEN = {
    # The one row of persons that the analyst sees is of Ada; of hers neither login nor browser.
    Role.ANALYST: ("bob", "'ada'", '"ada"', "SCRAM-SHA"),
    Role.PARTNER: ("bob", "ada", "SCRAM-SHA", "/4", "division by zero"),
}


@pytest.mark.parametrize("role", HIDDEN)
def test_a_reader_finds_no_way_round(logins: Logins, database: str, role: Role) -> None:
    with psycopg.connect(database, autocommit=True) as superuser:
        superuser.execute("ANALYZE")
    answers = {}
    for statement in LEAKS.strip().split(";\n"):
        with logins(LOGINS[role]) as connection:
            try:
                cursor = connection.execute(statement.encode())
                while cursor.nextset():
                    pass
                answers[statement] = repr(cursor.fetchall()) if cursor.description else "done"
            except psycopg.Error as error:
                answers[statement] = str(error)
    lines = {statement: answer.partition("\n")[0] for statement, answer in answers.items()}
    assert {statement: line for statement, line in lines.items() if any(text in line for text in HIDDEN[role])} == {}
    assert "done" not in answers.values()
    assert sum("permission denied" in answer or "must be" in answer for answer in answers.values()) > 10, answers


def test_a_plan_estimates_nothing_by_hidden_values(logins: Logins, database: str) -> None:
    """The functions of these conditions keep quiet, so PostgreSQL lets whoever asks see estimates by statistics."""
    with psycopg.connect(database, autocommit=True) as superuser:
        superuser.execute(
            f"INSERT INTO {SCHEMA}.counts "
            "SELECT 'old', CASE WHEN n % 5 = 0 THEN '/bob' || n ELSE '/' || n END, 1, n % 5 "
            "FROM generate_series(11, 1010) AS n".encode()
        )
        superuser.execute("ANALYZE")
        superuser.execute(f"COMMENT ON TABLE {SCHEMA}.counts IS NULL".encode())
        with logins(postgres.WRITER) as writer:
            deliver(writer, 1)
        superuser.execute("ANALYZE")
        query = "SELECT tablename, attname FROM pg_stats WHERE schemaname = %s ORDER BY 1"
        kept = superuser.execute(query, [SCHEMA]).fetchall()
    assert [row for row in kept if row[0] != "publications"] == [
        (n, "day") for n in ("anonymous", "counts", "internal", "persons")
    ]
    plans = {
        page: logins.ask(Role.PARTNER, f"EXPLAIN SELECT page FROM {SCHEMA}.counts WHERE page >= '{page}'")[0]
        for page in ("/bob0", "/zoe")
    }
    assert plans["/bob0"] == plans["/zoe"]


def test_the_writer_is_no_superuser_and_reads_nothing_else(logins: Logins, database: str) -> None:
    with psycopg.connect(database, autocommit=True) as superuser:
        superuser.execute("CREATE TABLE public.others AS SELECT 1 AS a")
        flags = superuser.execute(
            "SELECT rolname, rolsuper, rolcreaterole, rolcreatedb, rolcanlogin, rolbypassrls FROM pg_roles "
            "WHERE rolname LIKE 'blogdata!_%' ESCAPE '!'"
        ).fetchall()
        owners = superuser.execute("SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'serving'").fetchall()
    assert {name: row for name, *row in flags} == {
        postgres.OWNER: [False, False, False, False, False],
        postgres.WRITER: [False, False, False, True, True],
        **{login: [False, False, False, True, False] for login in LOGINS.values()},
    }
    assert owners == [(postgres.OWNER,)]
    with logins(postgres.WRITER) as writer:
        for statement in (
            "SELECT * FROM public.others",
            "SELECT pg_read_file('PG_VERSION')",
            "COPY (SELECT 1) TO PROGRAM 'cat'",
            "DROP TABLE serving.persons",
            "CREATE ROLE another",
            "ALTER ROLE blogdata_partner PASSWORD 'mine'",
        ):
            with pytest.raises(errors.InsufficientPrivilege):
                writer.execute(statement)
        # It writes what it has written before: a newer version of the day, without a grant in between.
        before = writer.execute("SELECT xmin FROM pg_class WHERE relname = 'persons'").fetchone()
        deliver(writer, version=1)
        assert writer.execute("SELECT xmin FROM pg_class WHERE relname = 'persons'").fetchone() == before
        assert writer.execute("SELECT max(table_version) FROM serving.publications").fetchone() == (1,)


def test_a_column_that_becomes_personal_is_taken_away(logins: Logins) -> None:
    assert logins.ask(Role.ANALYST, "SELECT page FROM serving.persons") == [("/ada",)]
    page = replace(PERSONS.columns[1], subject=Subject(whose=Whose.VISITOR, how=How.DIRECT))
    closer = replace(PERSONS, columns=(PERSONS.columns[0], page, *PERSONS.columns[2:]))
    with logins(postgres.WRITER) as writer:
        deliver(writer, 1, (closer, COUNTS, INTERNAL))
    with pytest.raises(errors.InsufficientPrivilege):
        logins.ask(Role.ANALYST, "SELECT page FROM serving.persons")
    assert logins.ask(Role.ANALYST, "SELECT count(day) FROM serving.persons") == [(1,)]
