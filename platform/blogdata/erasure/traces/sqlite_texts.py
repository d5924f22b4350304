"""Texts in Dagster's SQLite files, whose rows are needed: values in them are overwritten.

Dagster's history of runs is made of these rows, so a value is replaced by as many asterisks, as in a landed file by
filler. Only what is no word or number of a program is looked for: e-mails, and long ids with letters and digits. A
login is chosen by its user, and may be `python3`. What else the search at the end finds, such as a login in a tag of a
run, it names. Logs of Dagster's steps are only there to be looked at: those with values are removed.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Collection, Iterator
from contextlib import closing
from pathlib import Path

from blogdata.erasure.cleared import Cleared, Note
from blogdata.services.config import Settings
from blogdata.suppression.identifiers import Identifiers
from blogdata.suppression.landed_persons import DISTINCTIVE

_FILES = re.compile(r"(dagster/(?:.+/)?[^/]+\.db)(?:-wal|-shm|-journal)?")
_LOGS = "dagster/compute_logs/"
_BUSY_SECONDS = 60.0
_ALONE = r"(?<![\w.+@-])(?:{})(?![\w+@-]|\.\w)"
"""A value that is no part of another one, as `bo@mail.example` is of `al.bo@mail.example`."""


def clear(settings: Settings, persons: Identifiers, paths: Collection[str], note: Note) -> Iterator[Cleared]:
    """Overwrite values in the texts of SQLite files, and remove logs of Dagster's steps that have any."""
    logs = [settings.home / path for path in paths if path.startswith(_LOGS)]
    note(done := Cleared(place="logs of Dagster's steps", files=len(logs)))
    for log in logs:
        log.unlink(missing_ok=True)
    yield done
    distinct = sorted(_distinct(persons), key=len, reverse=True)
    pattern = re.compile(_ALONE.format("|".join(map(re.escape, distinct))))
    found = {match[1] for path in paths if (match := _FILES.fullmatch(path))}
    for name in sorted(found) if distinct else ():
        try:
            yield _overwrite(settings.home / name, name, pattern, note)
        except sqlite3.Error as error:
            yield Cleared(place=name, left=f"it cannot be written: {error}")


def _distinct(persons: Identifiers) -> set[str]:
    """Return the values that stand for nothing else, wherever they are."""
    mails = {value for value in persons.values() if "@" in value.strip("@")}
    return mails | {value for value in persons.user_ids | persons.visit_ids if _is_long_and_mixed(value)}


def _is_long_and_mixed(value: str) -> bool:
    return len(value) >= DISTINCTIVE and any(map(str.isdecimal, value)) and any(map(str.isalpha, value))


def _overwrite(file: Path, place: str, pattern: re.Pattern[str], note: Note) -> Cleared:
    with closing(sqlite3.connect(file, timeout=_BUSY_SECONDS, isolation_level=None)) as connection:
        connection.create_function("has_value", 1, lambda cell: isinstance(cell, str) and bool(pattern.search(cell)))
        connection.create_function("overwritten", 1, lambda text: pattern.sub(lambda found: "*" * len(found[0]), text))
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("BEGIN IMMEDIATE")
        rows = {
            (table, column): connection.execute(f"SELECT count(*) FROM {table} WHERE has_value({column})").fetchone()[0]
            for table, column in _columns(connection)
        }
        note(done := Cleared(place=place, rows=sum(rows.values())))
        for table, column in (cells for cells, count in rows.items() if count):
            # A text that would then be that of another row stays: the search names the file.
            changed = f"UPDATE OR IGNORE {table} SET {column} = overwritten({column})"
            connection.execute(f"{changed} WHERE has_value({column})")
        connection.execute("COMMIT")
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return done


def _columns(connection: sqlite3.Connection) -> Iterator[tuple[str, str]]:
    """List the columns of all tables, quoted."""
    for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        for row in connection.execute(f"PRAGMA table_info({_quoted(table)})").fetchall():
            yield _quoted(table), _quoted(row[1])


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
