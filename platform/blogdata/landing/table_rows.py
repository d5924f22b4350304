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

A value that the database cannot compute or decode, such as `1 / 0` in a view or bytes that are no text, lands as an
object with the SQLSTATE, which no field takes: its row is a dead letter that names the column. Such values are looked
for only if a load fails, among ever fewer rows; a row is known by a digest of its columns that can be computed.
Source: PostgreSQL, `setupConnection` of `pg_dump`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TypeVar

import psycopg
from psycopg import sql

from blogdata.contract.column_types import Field
from blogdata.errors import ConfigurationError

_Result = TypeVar("_Result")
_MOST = 100
"""Rows with a value of a column that cannot be read; of more, the column is at fault."""
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
_TEXT, _NO_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*"'), b'{"sqlstate" : "22021"}'
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
    """A table, or a view."""

    name: str
    adapted: dict[str, str | None]
    """Each column to the type it is cast to before it becomes JSON; None: as it is."""
    known_by: tuple[str, ...] = ()
    """Columns whose digest tells rows apart."""
    unreadable: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Column to the digests of rows whose value cannot be read, each to its SQLSTATE."""

    @property
    def identifier(self) -> sql.Identifier:
        return sql.Identifier(*self.name.split("."))


@contextmanager
def snapshot(connection: psycopg.Connection, table: str) -> Iterator[None]:
    """Read everything inside the block at one state of the database, and change nothing of it."""
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
        why = (
            f"a value of SQLSTATE {error.sqlstate}"
            if isinstance(error, psycopg.DataError)
            else error.diag.message_primary
        )
        raise ConfigurationError(
            what=f"the database refuses the query: {why}",
            where=f"table {table}, database {connection.info.dbname}, login {connection.info.user}",
            next_step=f"mend the table or view, or the rights of {connection.info.user}",
        ) from None


def describe(
    connection: psycopg.Connection, name: str, announced: Collection[Field], *, delta: str | None = None
) -> SourceTable:
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
    for column, type_, base, *kind in columns:
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
    return SourceTable(
        name=name,
        adapted={column: _cast(base, is_text=kinds.get(column) == "STRING") for column, _, base, *_ in columns},
    )


def each_row(
    connection: psycopg.Connection, table: SourceTable, where: sql.Composable, read: Callable[[SourceTable], _Result]
) -> _Result:
    """Call `read`; if a value cannot be read, mark such values and call it again."""
    try:
        with connection.transaction():
            return read(table)
    except psycopg.DataError:
        table = _marked(connection, table, where)
    return read(table)


def read(connection: psycopg.Connection, query: sql.Composable) -> Iterator[bytes]:
    """Read the result of a query of one text column, which is JSON behind at most a word."""
    if _is_undeclared(connection):
        # It may have any bytes.
        connection.execute("SET LOCAL client_encoding = SQL_ASCII")
    with connection.cursor().copy(sql.SQL("COPY ({}) TO STDOUT").format(query)) as rows:
        # The server sends one row at a time.
        for row in rows:
            line = bytes(row).removesuffix(b"\n")
            if b"\\" in line:
                for copied, plain in _COPIED:
                    line = line.replace(copied, plain)
            yield line if line.isascii() else _TEXT.sub(lambda text: text[0] if _is_utf_8(text[0]) else _NO_TEXT, line)


def _is_undeclared(connection: psycopg.Connection) -> bool:
    return connection.info.parameter_status("server_encoding") == "SQL_ASCII"


def _is_utf_8(text: bytes) -> bool:
    try:
        return bool(text.decode())
    except UnicodeDecodeError:
        return False


def as_json(table: SourceTable) -> sql.Composable:
    """Build the query of all rows of a table as JSON objects, with the fields in the order of its columns."""
    return sql.SQL("SELECT row_to_json(r) FROM ({}) r").format(columns_of(table))


def columns_of(table: SourceTable) -> sql.Composable:
    """Build the query of all columns of a table, adapted; a condition may follow it."""
    columns = sql.SQL(", ").join(
        sql.SQL("{} AS {}").format(_column(table, name), sql.Identifier(name)) for name in table.adapted
    )
    return sql.SQL("SELECT {} FROM {}").format(columns, table.identifier)


def _column(table: SourceTable, name: str) -> sql.Composable:
    cast = table.adapted[name]
    column = sql.SQL("{}::{}").format(sql.Identifier(name), sql.SQL(cast)) if cast else sql.Identifier(name)
    if name not in table.unreadable:
        return column
    states = sql.Literal(json.dumps(table.unreadable[name]))
    return sql.SQL(
        "CASE WHEN {0}::jsonb ? {1} THEN json_build_object('sqlstate', {0}::jsonb ->> {1}) ELSE to_json({2}) END"
    ).format(states, _digest(table), column)


def _digest(table: SourceTable) -> sql.Composable:
    return sql.SQL("md5(ROW({})::text)").format(sql.SQL(", ").join(map(sql.Identifier, table.known_by)))


def _marked(connection: psycopg.Connection, table: SourceTable, where: sql.Composable) -> SourceTable:
    """Find the values that cannot be read of the rows that fulfil a condition."""

    def states(value: sql.Composable, begin: str = "") -> Iterator[tuple[str, str]]:
        """Return the rows whose value is refused, and the SQLSTATE, of those whose digest begins so."""
        rows = sql.SQL("FROM {} WHERE ({}) AND starts_with({}, {})").format(
            table.identifier, where, _digest(table), sql.Literal(begin)
        )
        try:
            with connection.transaction():
                connection.execute(sql.SQL("SELECT count({}) {}").format(value, rows))
            return
        except psycopg.DataError as error:
            state = error.sqlstate or ""
        some = connection.execute(sql.SQL("SELECT DISTINCT {} {} LIMIT 2").format(_digest(table), rows)).fetchall()
        if len(some) == 1:
            yield some[0][0], state
        for digit in "0123456789abcdef" if len(some) > 1 else "":
            yield from states(value, begin + digit)

    texts = {name: sql.SQL("md5({}::text)").format(sql.Identifier(name)) for name in table.adapted}
    table = replace(table, known_by=tuple(name for name, text in texts.items() if not any(states(text))))
    for name in table.adapted:
        # What the client would be sent.
        encoding = sql.Literal("SQL_ASCII" if _is_undeclared(connection) else "UTF8")
        value = sql.SQL("convert_to(to_json({})::text, {})").format(_column(table, name), encoding)
        if refused := dict(islice(states(value), _MOST + 1)):
            table = replace(table, unreadable={**table.unreadable, name: refused})
        if len(refused) > _MOST:
            raise ConfigurationError(
                what=f"more than {_MOST} values of the column {name} cannot be read, SQLSTATE {min(refused.values())}",
                where=f"table {table.name}, database {connection.info.dbname}",
                next_step="mend the column, or name a view in which it is null",
            )
    return table


def _is_adapted(base: str, kind: str, category: str, element: str | None, kind_of_element: str | None) -> bool:
    if category == _ARRAY:
        return element in _ADAPTED - {"json"} or kind_of_element == _ENUM
    return base in _ADAPTED or kind == _ENUM


def _cast(base: str, *, is_text: bool) -> str | None:
    return "text" if base == "bpchar" or (is_text and base in _NUMBERS) else None
