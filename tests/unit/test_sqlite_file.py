"""One SQLite file: a failed write leaves nothing behind and is reported with its cause."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from blogdata.errors import PlatformError
from blogdata.files import SqliteStore


class Numbers(SqliteStore):
    schema = "CREATE TABLE numbers (number INTEGER PRIMARY KEY)"
    busy_seconds = 1.0
    unusable = PlatformError
    called = "the numbers"
    remedy = "look at them"


@pytest.mark.parametrize("rolled_back", ["ABORT", "ROLLBACK"])
def test_a_failed_write_is_reported_as_what_it_is(tmp_path: Path, rolled_back: str) -> None:
    # OR ROLLBACK makes SQLite end the transaction itself, as a full disk does.
    file = Numbers(path=tmp_path / "numbers.sqlite")
    with pytest.raises(PlatformError, match="UNIQUE constraint failed") as raised, file.writing() as connection:
        connection.executemany(f"INSERT OR {rolled_back} INTO numbers VALUES (?)", [(1,), (1,)])
    assert isinstance(raised.value.__cause__, sqlite3.IntegrityError)
    assert file.rows("SELECT * FROM numbers") == []
