"""Incremental Loader: of a growing table only the rows of the run's windows are read, by the time in a delta column.

Problem: a table grows without bound, and reading all of it each time costs more each time. It has a column with the
time at which a row was written or changed.
How it works: a window is an hour or a day, half-open: a row at the instant between two windows is in the later one
only. The condition is sent to the server (:func:`load`), which needs an index of the column not to read the whole
table; a backfill of an old window reads that window. All windows of a load are read at one state of the database. The
rows land in the hours or days of the landing zone in which the column says they were written. The window of the present
is read up to now, if it is loaded, and again later.

A window is compared with what has landed of it, line by line, and only rows that have not landed are added, as a
further file. So a load may be repeated, cut off or run for old windows at any time, and no row is lost or doubled. Each
load reads the windows of an overlap again, which finds rows that were committed late with an early time; of a
transaction that stays open for longer, the rows come when their window is loaded by name.

Rows whose time is null, `-infinity` or still to come land apart, once each, to be dead-lettered (:data:`UNTIMED`).
Those before the first window are counted. Soft deletes travel as another line; hard deletes are unseen, as a row that
is gone cannot be read.
The trap: to remember the newest time that was read and to continue after it. Rows of that very instant that are
committed later are lost, or doubled if it is included; and a row with a time in the year 2099 ends all loading.
When not to use it: if rows are changed without a new time, or hard deletes must be seen; then Change Data Capture, or a
Full Loader if the table is small.
Source: Data Engineering Design Patterns, ch. 2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import blake2b
from itertools import groupby
from pathlib import Path

import psycopg
from psycopg import sql

from blogdata.contract.column_types import Field, Struct
from blogdata.contract.partitions import Grain, between, following, start_of
from blogdata.files import alone, hidden, write_atomically
from blogdata.landing import table_rows
from blogdata.landing.landed_links import require_within
from blogdata.landing.lines import UNTIMED, kept_lines
from blogdata.landing.readiness_marker import FLAG, is_data, mark
from blogdata.landing.sizes import count_erased

AHEAD = timedelta(hours=1)
"""How far the clock of who writes the rows may be ahead."""
_ENDING = ".jsonl"
"""The stream of visits, which takes what comes within seconds, leaves files with this ending to the batch."""
_KEY_FORMATS = {Grain.HOUR: 'YYYY-MM-DD"T"HH24', Grain.DAY: "YYYY-MM-DD"}


@dataclass(frozen=True, kw_only=True)
class DeltaTable:
    """A table, its column with the time (TIMESTAMPTZ) at which a row was written or changed, and how its rows land."""

    name: str
    delta: str
    announced: tuple[Field, ...]
    """The columns that are read."""
    line: tuple[Field, ...]
    """The fields of a line, each with the values of the column of its name, or with fields again."""
    prefix: str
    grain: Grain


def load(
    connection: psycopg.Connection,
    table: DeltaTable,
    landed: Path,
    first: str,
    last: str,
    *,
    now: datetime,
    untimed_in: str,
    count_before: bool = False,
    prepare: Callable[[Path], object] = lambda _: None,
) -> Load:
    """Land the rows of a table that have not landed, of the windows from `first` to `last`.

    Those without a usable time land in the window `untimed_in`.
    """
    delta, future = sql.Identifier(table.delta), now + AHEAD
    begin, end = start_of(first, table.grain), min(start_of(following(last, table.grain), table.grain), future)
    timed = sql.SQL("{0} >= {1} AND {0} < {2}").format(delta, sql.Literal(begin), sql.Literal(end))
    untimed = sql.SQL("{0} IS NULL OR {0} >= {1} OR {0} = '-infinity'").format(delta, sql.Literal(future))
    with alone(landed), table_rows.snapshot(connection, table.name):
        source = table_rows.describe(connection, table.name, table.announced, delta=table.delta)
        loaded = Load(table, landed, prepare)
        keys = between(first, last, table.grain)

        def load_timed(source: table_rows.SourceTable) -> None:
            loaded.windows(_lines(connection, table, source, timed), keys)

        def of_no_window(source: table_rows.SourceTable) -> list[bytes]:
            return [line for _, line in _lines(connection, table, source, untimed)]

        # What has landed before a value that cannot be read is there already the second time.
        table_rows.each_row(connection, source, timed, load_timed)
        loaded.window(untimed_in, table_rows.each_row(connection, source, untimed, of_no_window), UNTIMED)
        if count_before:
            earlier = sql.SQL("SELECT count(*) FROM {0} WHERE {1} > '-infinity' AND {1} < {2}")
            counted = connection.execute(earlier.format(source.identifier, delta, sql.Literal(begin)))
            ((loaded.before,),) = counted.fetchall()
    return loaded


def _lines(
    connection: psycopg.Connection, table: DeltaTable, source: table_rows.SourceTable, where: sql.Composable
) -> Iterator[tuple[str, bytes]]:
    """Read rows in the order of their times, each as its window and its line."""
    key_format = sql.Literal(_KEY_FORMATS[table.grain])
    window = sql.SQL("to_char({} AT TIME ZONE 'UTC', {})").format(sql.Identifier(table.delta), key_format)
    query = sql.SQL("SELECT coalesce({}, '') || ' ' || {}::text FROM ({} WHERE {}) r ORDER BY {}").format(
        window, _object(table.line), table_rows.columns_of(source), where, sql.Identifier(table.delta)
    )
    for row in table_rows.read(connection, query):
        key, _, line = row.partition(b" ")
        yield key.decode(), line


def _object(fields: Sequence[Field]) -> sql.Composable:
    values = [
        _object(field.type.fields) if isinstance(field.type, Struct) else sql.Identifier(field.name) for field in fields
    ]
    parts = [part for field, value in zip(fields, values, strict=True) for part in (sql.Literal(field.name), value)]
    return sql.SQL("json_build_object({})").format(sql.SQL(", ").join(parts))


@dataclass
class Load:
    """A load, with the rows in each window that has any, by its key, those in no window by :data:`UNTIMED`."""

    table: DeltaTable
    landed: Path
    prepare: Callable[[Path], object]
    rows: dict[str, int] = field(default_factory=dict)
    new: dict[str, int] = field(default_factory=dict)
    """Of these rows those that had not landed."""
    before: int | None = None
    """Rows before the first window, which are not loaded, if they were counted."""

    def windows(self, lines: Iterator[tuple[str, bytes]], keys: Sequence[str]) -> None:
        """Land what is new in each window; `lines` are in the order of the windows."""
        for key, rows in groupby(lines, key=lambda row: row[0]):
            self.window(key, [line for _, line in rows])
        for key in keys:
            # Rows that have left a window since a crash between their file and its flag.
            if key not in self.rows and self._files(key, "-"):
                self.window(key, [])

    def window(self, key: str, lines: Sequence[bytes], part: str = "-") -> None:
        files = self._files(key, part)
        left = Counter(map(_digest, lines))
        left -= Counter(_digest(line) for file in files for _, line in kept_lines(file))
        new = []
        # The newest of equal rows are the new ones, which makes no difference.
        for line in reversed(lines):
            if left[digest := _digest(line)]:
                left[digest] -= 1
                new.append(line)
        name = UNTIMED if part == UNTIMED else key
        if lines:
            self.rows[name] = len(lines)
        # Not their count: of files that were removed, the others stay.
        number = int(_number(files[-1])) + 1 if files else 1
        if new and (kept := self._land(key, f"{self.table.prefix}{part}{number}{_ENDING}", new[::-1])):
            self.new[name] = kept
        for folder in {file.parent for file in files}:
            if not (folder / FLAG).exists():
                # After a crash between a file and its flag.
                self._complete(folder)

    def _land(self, key: str, name: str, lines: Sequence[bytes]) -> int:
        target = self.landed / _folder_of(key, self.table.grain) / name
        require_within([target], self.landed.parent)
        partial = hidden(target)
        partial.write_bytes(b"".join(line + b"\n" for line in lines))
        self.prepare(partial)
        kept = len(lines) - count_erased(partial)[0]
        if not kept:
            # All of them are rows of persons who were forgotten.
            partial.unlink()
            return 0
        partial.replace(target)
        self._complete(target.parent)
        return kept

    def _complete(self, folder: Path) -> None:
        """Flag a window, unless another producer writes in it: then it is complete when that producer says so."""
        names = [path.name for path in folder.iterdir() if is_data(path.name)]
        others = any(not (name.startswith(f"{self.table.prefix}-") and name.endswith(_ENDING)) for name in names)
        if not others or (folder / FLAG).exists():
            mark(folder)

    def _files(self, key: str, part: str) -> list[Path]:
        # Rows without a time may have landed in any window.
        folder = _folder_of(None if part == UNTIMED else key, self.table.grain)
        files = self.landed.glob(f"{folder}/{self.table.prefix}{part}[0-9]*{_ENDING}")
        # Somebody's copy of a file, `-1-old`, is none of them.
        return sorted((file for file in files if _number(file).isdecimal()), key=lambda file: int(_number(file)))


def loaded_until(folder: Path, table: str) -> str:
    """Return the last hour up to which a table was loaded; if empty, it is compared with all that has landed."""
    file = _progress(folder, table)
    return file.read_text(encoding="utf-8") if file.is_file() else ""


def note_loaded(folder: Path, table: str, until: str) -> None:
    write_atomically(_progress(folder, table), until.encode())


def _progress(folder: Path, table: str) -> Path:
    # Beside the files that it tells of: a copy of the landing zone has it, too.
    return folder / f".{table}"


def _folder_of(key: str | None, grain: Grain) -> str:
    """Return the folder of a window below that of its table; of any window without a key, as a pattern."""
    day, hour = (key[:10], key[11:]) if key else ("*", "*")
    return f"date={day}" if grain is Grain.DAY else f"date={day}/hour={hour}"


def _number(file: Path) -> str:
    return file.stem.rpartition("-")[2]


def _digest(line: bytes) -> bytes:
    return blake2b(line, digest_size=16).digest()
