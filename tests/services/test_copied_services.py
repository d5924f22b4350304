"""A service belongs to the home that started it: neither a copy of the home nor one that was moved uses or stops it."""

from __future__ import annotations

import logging
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from blogdata.errors import PlatformError
from blogdata.services import dagster_home, postgres, processes
from blogdata.services.config import Settings
from blogdata.services.processes import ProcessIdentity


@pytest.fixture
def homes(settings: Settings, tmp_path: Path) -> Iterator[tuple[Settings, Settings]]:
    """A home whose PostgreSQL has a table, and one beside it that is not made yet."""
    found = [replace(settings, home=tmp_path / name, lake=tmp_path / name / "lake") for name in ("first", "second")]
    first, second = found
    with psycopg.connect(postgres.up(first)) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 1 AS one")
    yield first, second
    for each in found:
        if each.home.is_dir():
            postgres.stop(each)


def process_of(settings: Settings) -> ProcessIdentity:
    """Return the process of a home's PostgreSQL, which runs."""
    pid = postgres.status(settings).pid
    assert pid is not None
    return processes.identify(pid)


def rows(address: str) -> int:
    """Count the rows of the table."""
    with psycopg.connect(address) as connection:
        return len(connection.execute("SELECT one FROM kept").fetchall())


def test_a_copied_home_has_a_postgresql_and_a_ui_of_its_own(homes: tuple[Settings, Settings]) -> None:
    first, second = homes
    (first.home / "dagster").mkdir()
    dagster_home.note_ui_address(first.home / "dagster", "127.0.0.1:3000")
    subprocess.run(["cp", "-a", first.home, second.home], check=True)
    served = process_of(first)
    assert (postgres.status(second).state, postgres.status(second).pid) == ("stopped", None)
    assert postgres.is_configured(second), "a run in the copy publishes, as one in the original does"
    assert dagster_home.ui_address(second.home / "dagster") is None
    assert dagster_home.ui_address(first.home / "dagster") == "http://127.0.0.1:3000"

    address = postgres.up(second)
    assert process_of(second) != served
    with psycopg.connect(address) as connection:
        connection.execute("INSERT INTO kept VALUES (2)")
    assert (rows(postgres.up(first)), rows(address)) == (1, 2)
    assert postgres.stop(second)
    assert process_of(first) == served
    assert not postgres.stop(second)
    assert process_of(first) == served


def test_a_moved_home_names_the_server_that_still_runs_on_its_database(
    homes: tuple[Settings, Settings], caplog: pytest.LogCaptureFixture
) -> None:
    first, second = homes
    served = process_of(first)
    first.home.rename(second.home)
    with caplog.at_level(logging.WARNING):
        assert postgres.status(second).state == "stopped"
    assert f"postgres of {first.home}, which is no more, still runs: process {served.pid}" in caplog.text
    with pytest.raises(PlatformError, match=f"PID {served.pid}"):
        postgres.up(second)
    assert not postgres.stop(second)
    assert processes.is_alive(served), "two servers of one database would destroy it"
    assert processes.stop(served)
    assert rows(postgres.up(second)) == 1
