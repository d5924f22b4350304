"""One SQLite file: a failed write leaves nothing behind and is reported with its cause."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from blogdata.durable.sqlite_file import SqliteFile
from blogdata.errors import PlatformError


def numbers(folder: Path) -> SqliteFile:
    """Make a file with a table of numbers."""
    return SqliteFile(
        path=folder / "numbers.sqlite",
        schema="CREATE TABLE numbers (number INTEGER PRIMARY KEY)",
        busy_seconds=1.0,
        unusable=lambda error: PlatformError(what=str(error), where="the numbers", next_step="look at them"),
    )


@pytest.mark.parametrize("rolled_back", ["ABORT", "ROLLBACK"])
def test_a_failed_write_is_reported_as_what_it_is(tmp_path: Path, rolled_back: str) -> None:
    # OR ROLLBACK makes SQLite end the transaction itself, as a full disk does.
    file = numbers(tmp_path)
    with pytest.raises(PlatformError, match="UNIQUE constraint failed") as raised, file.writing() as connection:
        connection.executemany(f"INSERT OR {rolled_back} INTO numbers VALUES (?)", [(1,), (1,)])
    assert isinstance(raised.value.__cause__, sqlite3.IntegrityError)
    assert file.read("SELECT * FROM numbers") == []
