"""Reads rows of a PostgreSQL table as lines of JSON, the form in which files land.

The server writes the JSON and Python passes it on, so memory does not grow with the table. What each type becomes:

- text, varchar, char, uuid and enums: a text; `char(n)` without its padding;
- smallint to bigint, numeric, real and double: a number with all its digits, or its digits as a text if the field is
  announced as a text; `NaN` and infinities are texts;
- boolean; date: as ISO 8601; timestamptz: as ISO 8601 in UTC;
- json and jsonb: as they are;
- arrays of these: an array. A domain: as the type below it.

Only columns that are announced are read. Of these, every other type is refused by name before a row is read, since a
text of it would be a guess: a timestamp without time zone is no instant, and bytes, intervals, money, ranges and
composite types have no form in JSON. A view casts them.

A session inherits nothing: what a database or a login sets could change values or leave rows out in silence. A table
that would be read in part, by row-level security, is refused.

Source: PostgreSQL, `setupConnection` of `pg_dump`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from blogdata.errors import ConfigurationError
from blogdata.publish.column_types import Field

if TYPE_CHECKING:
    import psycopg
    from psycopg import sql

_TEXTS = {"text", "varchar", "bpchar", "uuid"}
_NUMBERS = {"int2", "int4", "int8", "numeric", "float4", "float8"}
_ADAPTED = {*_TEXTS, *_NUMBERS, "bool", "date", "timestamptz", "json", "jsonb"}
_ENUM, _ARRAY = "e", "A"
_SESSION = {
    "application_name": "blogdata",
    "client_encoding": "UTF8",
    "datestyle": "ISO, MDY",
    "extra_float_digits": "3",
    "idle_in_transaction_session_timeout": "0",
    "intervalstyle": "postgres",
    "lock_timeout": "0",
    "row_security": "off",
    # A name without a schema is one of `public`, whoever logs in.
    "search_path": "pg_catalog, public, pg_temp",
    "statement_timeout": "0",
    "timezone": "UTC",
    "transaction_timeout": "0",
}
# Not each server knows all of them.
_SET = "SELECT set_config(name, %s::jsonb ->> lower(name), true) FROM pg_settings WHERE %s::jsonb ? lower(name)"
# Of JSON, COPY escapes all backslashes and, between values, white space; the NUL that it never has holds their place.
_COPIED = ((rb"\\", b"\0"), (rb"\n", b" "), (rb"\r", b" "), (rb"\t", b" "), (b"\0", b"\\"))
_COLUMNS = """
    SELECT a.attname, format_type(a.atttypid, a.atttypmod), b.typname, b.typtype, b.typcategory, e.typname, e.typtype
    FROM pg_attribute a
    JOIN pg_type t ON t.oid = a.atttypid
    JOIN pg_type b ON b.oid = CASE t.typtype WHEN 'd' THEN t.typbasetype ELSE t.oid END
    LEFT JOIN pg_type e ON e.oid = b.typelem AND b.typcategory = 'A'
    WHERE a.attrelid = to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped
    ORDER BY a.attnum
"""


@dataclass(frozen=True, kw_only=True)
class SourceTable:
    """A table, or a view; `adapted`: each column to the type it is cast to before it becomes JSON (None: as it is)."""

    name: str
    adapted: dict[str, str | None]

    @property
    def identifier(self) -> sql.Identifier:
        from psycopg import sql

        return sql.Identifier(*self.name.split("."))


@contextmanager
def snapshot(connection: psycopg.Connection, table: str) -> Iterator[None]:
    """Read everything inside the block at one state of the database, and change nothing of it."""
    import psycopg

    connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    connection.read_only = True
    try:
        with connection.transaction():
            connection.execute(_SET, [json.dumps(_SESSION)] * 2)
            yield
    except psycopg.OperationalError:
        raise
    except psycopg.Error as error:
        # Messages about data quote values.
        said = (
            f"a value of SQLSTATE {error.sqlstate}"
            if isinstance(error, psycopg.DataError)
            else error.diag.message_primary
        )
        raise ConfigurationError(
            what=f"the database refuses the query: {said}",
            where=f"table {table}, database {connection.info.dbname}, login {connection.info.user}",
            next_step=f"mend the table or view, or the rights of {connection.info.user}",
        ) from None


def describe(
    connection: psycopg.Connection, name: str, announced: Collection[Field], *, delta: str | None = None
) -> SourceTable:
    from psycopg import sql

    quoted = sql.Identifier(*name.split(".")).as_string(connection)
    columns = connection.execute(_COLUMNS, [quoted]).fetchall()
    if not columns:
        raise ConfigurationError(
            what="there is no such table, or this login may not see it",
            where=name,
            next_step="write it under [tables] as the database has it, with its schema unless that is public, or grant "
            f"SELECT on it to {connection.info.user}",
        )
    kinds = {field.name: str(field.type).upper() for field in announced}
    columns = [column for column in columns if column[0] in {*kinds, delta}]
    missing = sorted(kinds.keys() - {column[0] for column in columns})
    faults = [f"it lacks columns that are announced: {', '.join(missing)}"] if missing else []
    for column, shown, base, *kind in columns:
        # Of a number or a text nobody knows what it means: 1 is not `true`. A date is no instant.
        if kinds.get(column) == "BOOLEAN" and base != "bool":
            faults.append(f"{column} {shown}, which has to be boolean")
        elif base != "timestamptz" and (column == delta or (kinds[column] == "TIMESTAMP" and base not in _TEXTS)):
            faults.append(f"{column} {shown}, which has to be timestamptz")
        elif not _is_adapted(base, *kind):
            faults.append(f"{column} {shown}, which is not adapted")
    if faults:
        raise ConfigurationError(
            what=f"the table cannot be loaded: {'; '.join(faults)}",
            where=name,
            next_step="name a view that has them and says what they mean: is_deleted = 1 AS is_deleted, a timestamp by "
            "AT TIME ZONE, others cast to text",
        )
    return SourceTable(
        name=name,
        adapted={column: _cast(base, is_text=kinds.get(column) == "STRING") for column, _, base, *_ in columns},
    )


def read(connection: psycopg.Connection, query: sql.Composable) -> Iterator[bytes]:
    """Read the result of a query of one text column, which is JSON behind at most a word."""
    from psycopg import sql

    if connection.info.parameter_status("server_encoding") == "SQL_ASCII":
        # It may have any bytes: a row that is not UTF-8 lands, and is rejected as such.
        connection.execute("SET LOCAL client_encoding = SQL_ASCII")
    with connection.cursor().copy(sql.SQL("COPY ({}) TO STDOUT").format(query)) as rows:
        # The server sends one row at a time.
        for row in rows:
            line = bytes(row).removesuffix(b"\n")
            if b"\\" in line:
                for copied, plain in _COPIED:
                    line = line.replace(copied, plain)
            yield line


def as_json(table: SourceTable) -> sql.Composable:
    """Build the query of all rows of a table as JSON objects, with the fields in the order of its columns."""
    from psycopg import sql

    return sql.SQL("SELECT row_to_json(r) FROM ({}) r").format(columns_of(table))


def columns_of(table: SourceTable) -> sql.Composable:
    """Build the query of all columns of a table, adapted; a condition may follow it."""
    from psycopg import sql

    columns = sql.SQL(", ").join(
        sql.Identifier(name)
        if cast is None
        else sql.SQL("{}::{} AS {}").format(sql.Identifier(name), sql.SQL(cast), sql.Identifier(name))
        for name, cast in table.adapted.items()
    )
    return sql.SQL("SELECT {} FROM {}").format(columns, table.identifier)


def _is_adapted(base: str, kind: str, category: str, element: str | None, kind_of_element: str | None) -> bool:
    if category == _ARRAY:
        return element in _ADAPTED - {"json"} or kind_of_element == _ENUM
    return base in _ADAPTED or kind == _ENUM


def _cast(base: str, *, is_text: bool) -> str | None:
    return "text" if base == "bpchar" or (is_text and base in _NUMBERS) else None
