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

A value that the database cannot compute or decode, such as `1 / 0` in a view, ends the load with its SQLSTATE.

Source: PostgreSQL, `setupConnection` of `pg_dump`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from blogdata.contract.column_types import Field
from blogdata.errors import ConfigurationError

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
        is_of_data = isinstance(error, psycopg.DataError)
        why = f"a value of SQLSTATE {error.sqlstate}" if is_of_data else error.diag.message_primary
        raise ConfigurationError(
            what=f"the database refuses the query: {why}",
            where=f"table {table}, database {connection.info.dbname}, login {connection.info.user}",
            next_step=f"mend the table or view, or the rights of {connection.info.user}",
        ) from None


def columns_of(
    connection: psycopg.Connection, name: str, announced: Collection[Field], *, delta: str | None = None
) -> sql.Composable:
    """Build the query of the announced columns of a table and of its delta column; a condition may follow it."""
    from psycopg import sql

    table = sql.Identifier(*name.split("."))
    columns = connection.execute(_COLUMNS, [table.as_string(connection)]).fetchall()
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
    selected = []
    for column, type_, base, *kind in columns:
        is_text = base == "bpchar" or (kinds.get(column) == "STRING" and base in _NUMBERS)
        selected.append(sql.SQL("{0}::text AS {0}" if is_text else "{0}").format(sql.Identifier(column)))
        # Of a number or a text nobody knows what it means: 1 is not `true`. A date is no instant.
        if kinds.get(column) == "BOOLEAN" and base != "bool":
            faults.append(f"{column} {type_}, which has to be boolean")
        elif base != "timestamptz" and (column == delta or (kinds[column] == "TIMESTAMP" and base not in _TEXTS)):
            faults.append(f"{column} {type_}, which has to be timestamptz")
        elif not _is_adapted(base, *kind):
            faults.append(f"{column} {type_}, which is not adapted")
    if faults:
        raise ConfigurationError(
            what=f"the table cannot be loaded: {'; '.join(faults)}",
            where=name,
            next_step="name a view that has them and says what they mean: is_deleted = 1 AS is_deleted, a timestamp by "
            "AT TIME ZONE, others cast to text",
        )
    return sql.SQL("SELECT {} FROM {}").format(sql.SQL(", ").join(selected), table)


def read(connection: psycopg.Connection, query: sql.Composable) -> Iterator[bytes]:
    """Read the result of a query of one text column, which is JSON behind at most a word."""
    from psycopg import sql

    with connection.cursor().copy(sql.SQL("COPY ({}) TO STDOUT").format(query)) as rows:
        # The server sends one row at a time.
        for row in rows:
            line = bytes(row).removesuffix(b"\n")
            if b"\\" in line:
                for copied, plain in _COPIED:
                    line = line.replace(copied, plain)
            yield line


def _is_adapted(base: str, kind: str, category: str, element: str | None, kind_of_element: str | None) -> bool:
    if category == _ARRAY:
        return element in _ADAPTED - {"json"} or kind_of_element == _ENUM
    return base in _ADAPTED or kind == _ENUM
