"""A table of a database is a source as files are: the same rows, guards and account.

Pattern: Full Loader.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timezone

import psycopg
import pytest

from blogdata.services import secrets
from blogdata.services.table_settings import TableSettings
from lineage.conftest import Deploy
from lineage.deployment import Deployment

ROWS = [("PC", "Work station", "1"), ("Phone", None, "14.10"), ("Phone", 'The "ü" \\ one', "15"), ("", "Nothing", "2")]
COLUMNS = ("type", "full_name", "version", "reasons")


@pytest.fixture(scope="module")
def blog(deploy: Deploy) -> Deployment:
    """A deployment without data."""
    return deploy("tables")


@pytest.fixture
def source(database: str) -> Iterator[psycopg.Connection]:
    """A database with a table of devices."""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE TABLE devices (type text, full_name varchar(40), version text)")
        connection.cursor().executemany("INSERT INTO devices VALUES (%s, %s, %s)", ROWS)
        yield connection


@pytest.fixture
def loading(blog: Deployment, database: str) -> Deployment:
    """The deployment with the table as its source; the password is a secret by its name."""
    password, place = database.removeprefix("postgresql://blogdata:").split("@")
    address = f"postgresql://blogdata@{place}"
    secret = blog.settings.home / "secrets" / "tables"
    secret.touch(mode=0o600)
    secret.write_text(password, encoding="utf-8")
    assert secrets.read(blog.settings, "tables").reveal() == password
    file = blog.settings.home / "blogdata.toml"
    before = file.read_text(encoding="utf-8").partition("\n[tables]")[0]
    file.write_text(f'{before}\n[tables]\nurl = "{address}"\nsecret = "tables"\ndevices = "devices"\n')
    tables = TableSettings(url=address, secret="tables", devices="devices")
    return Deployment(settings=replace(blog.settings, tables=tables))


def test_full_loader_of_a_table_has_the_rows_of_files_and_their_guards(
    loading: Deployment, source: psycopg.Connection, deploy: Deploy
) -> None:
    files = deploy("files")
    day = files.landing / "devices" / "date=2026-01-05"
    day.mkdir(parents=True)
    texts = (";".join(f'"{(text or "").replace(chr(34), 2 * chr(34))}"' for text in row) for row in ROWS)
    (day / "devices.csv").write_text("type;full_name;version\n" + "".join(f"{text}\n" for text in texts))
    (day / "_SUCCESS").touch()
    assert files.run(for_=["bronze.devices"]).problems == []
    assert loading.run(for_=["bronze.devices"]).problems == []
    delivered = [row for row in files.rows("bronze.devices", *COLUMNS) if row[-1] != ["header"]]
    # CSV has no null.
    assert _known(loading.rows("bronze.devices", *COLUMNS)) == _known(delivered)
    assert loading.problems() == []
    before = loading.versions()

    # Nothing is loaded twice a day, unless a person asks for it.
    assert loading.run(for_=["bronze.devices"]).runs == 0

    # Tomorrow's load finds the table empty: nothing is replaced, and both counts are said.
    with pytest.MonkeyPatch.context() as patch:
        tomorrow = datetime.fromtimestamp(datetime.now(timezone.utc).timestamp() + 86400, timezone.utc)
        patch.setattr("blogdata.planning.clock.now", lambda: tomorrow)
        source.execute("TRUNCATE devices")
        refused = loading.run(for_=["bronze.devices"])
        assert "the source has 0 rows, the last load had 4" in str(refused.problems)
        assert loading.versions()["bronze.devices"] == before["bronze.devices"]
        assert len(loading.rows("bronze.devices", "type")) == 4

        # Mended at the source, it is loaded again by itself; readers meanwhile see the old rows or the new ones.
        source.cursor().executemany("INSERT INTO devices VALUES (%s, %s, %s)", [*ROWS, ("Tablet", "New", "1")])
        done, seen = threading.Event(), set()

        def read() -> None:
            while not done.is_set():
                seen.add(len(loading.rows("bronze.devices", "type")))

        reading = threading.Thread(target=read)
        reading.start()
        try:
            assert loading.run(for_=["bronze.devices"]).problems == []
        finally:
            done.set()
            reading.join()
        assert seen <= {4, 5}
        assert len(loading.rows("bronze.devices", "type")) == 5

    assert loading.problems() == []


def test_full_loader_names_a_table_that_is_not_there(loading: Deployment) -> None:
    landed = sorted(loading.landing.rglob("*.json"))
    with pytest.MonkeyPatch.context() as patch:
        later = datetime.fromtimestamp(datetime.now(timezone.utc).timestamp() + 5 * 86400, timezone.utc)
        patch.setattr("blogdata.planning.clock.now", lambda: later)
        assert "there is no such table" in str(loading.run(for_=["bronze.devices"]).problems)
    assert sorted(loading.landing.rglob("*.json")) == landed


def _known(rows: list[tuple[object, ...]]) -> list[str]:
    return sorted(repr([value or None for value in row]) for row in rows)
