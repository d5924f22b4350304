"""PostgreSQL as a service: started, found, killed and stopped, by root and by others."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from blogdata.errors import PlatformError
from blogdata.operate import postgres, postgres_connection, secrets
from blogdata.operate.config import PostgresSettings, Settings
from blogdata.operate.postgres_connection import PostgresUnreachable
from blogdata.patterns.security.secrets_pointer import Secret
from blogdata.watch import doctor
from kills import kill_postgres


@pytest.fixture
def mine(settings: Settings, tmp_path: Path) -> Iterator[Settings]:
    """A deployment of one test."""
    own = replace(settings, home=tmp_path, landing=tmp_path / "landing", lake=tmp_path / "lake")
    yield own
    if own.postgres.url is None:
        postgres.stop(own)


def test_concurrent_starts_share_one_server_keeping_data(mine: Settings) -> None:
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: postgres.up(mine), range(2))
    assert first == second
    with psycopg.connect(first) as connection:
        assert connection.execute("SHOW wal_level").fetchone() == ("logical",)
        assert connection.execute("SHOW listen_addresses").fetchone() == ("127.0.0.1",)
        connection.execute("CREATE TABLE kept AS SELECT 1 AS one")
    assert postgres.stop(mine)
    assert not postgres.is_configured(mine)
    assert postgres.up(mine) == first, "the address stays"
    with psycopg.connect(first) as connection:
        assert connection.execute("SELECT one FROM kept").fetchone() == (1,)


def test_a_killed_server_is_reported_and_restarted(mine: Settings) -> None:
    url = postgres.up(mine)
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 1 AS one")
    kill_postgres(mine)
    assert postgres.status(mine).state == "dead"
    assert [item.ok for item in doctor.examine(mine) if item.name == "postgres"] == [False]
    assert postgres.is_configured(mine)
    with psycopg.connect(postgres.running_address(mine).complete()) as connection:
        assert connection.execute("SELECT current_user").fetchone() == (postgres.WRITER,)
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT one FROM kept").fetchone() == (1,)
    assert [item.ok for item in doctor.examine(mine) if item.name == "postgres"] == [True]


def test_the_server_requires_its_password_and_hides_it(mine: Settings) -> None:
    url = postgres.up(mine)
    password = json.loads((mine.home / "services" / "postgres" / "server.json").read_text())["password"]
    assert password in url
    assert password not in f"{postgres.status(mine)}"
    assert (mine.home / "services" / "postgres" / "server.json").stat().st_mode & 0o077 == 0
    wrong = url.replace(password, "wrong")
    with pytest.raises(PostgresUnreachable) as refused, postgres_connection.connected(wrong):
        pass
    assert password not in str(refused.value)
    assert not (mine.home / "services" / "postgres" / "password").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has to become somebody else")
def test_root_without_user_namespaces_is_refused(mine: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("blogdata.operate.postgres.shutil.which", lambda _: None)
    with pytest.raises(PlatformError, match="does not run as root"):
        postgres.up(mine)


def test_a_configured_external_postgres_is_used(mine: Settings, database: str) -> None:
    theirs = replace(mine, postgres=PostgresSettings(url=database))
    assert postgres.is_configured(theirs)
    assert postgres.running_address(theirs).complete() == database
    seen = postgres.status(theirs)
    assert (seen.state, seen.pid) == ("running", None)
    gone = replace(mine, postgres=PostgresSettings(url="postgresql://a:secret@127.0.0.1:1/b"))
    assert postgres.status(gone).state == "silent"
    with pytest.raises(PostgresUnreachable) as error:
        postgres.running_address(gone)
    assert error.value.transient
    assert "secret" not in str(error.value)


def test_a_password_is_named_and_read_when_it_is_used(mine: Settings, database: str) -> None:
    pointer = secrets.pointer(mine, "blog-db")
    password = urlsplit(database).password
    assert password is not None
    assert pointer.add(Secret("c4nary-old-password"), after=0)
    url = database.replace(f":{password}@", "@")
    theirs = replace(mine, postgres=PostgresSettings(url=url, secret="blog-db"))
    with pytest.raises(PostgresUnreachable) as refused:
        postgres.running_address(theirs)
    assert str(pointer.file()) in refused.value.next_step
    assert "c4nary" not in f"{refused.value} {postgres.status(theirs)}"
    assert pointer.add(Secret(password), after=1)
    with postgres_connection.connected(postgres.running_address(theirs)) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
