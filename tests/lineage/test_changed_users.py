"""Changed users of a table are merged by their key, and are part of the users' history.

Patterns: Merger, Incremental Loader, Stateful Merger.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import psycopg
import pytest

from assets import table_loads
from lineage.conftest import Deploy
from lineage.deployment import Deployment
from lineage.tables import USERS, reading
from lineage.test_tables_as_sources import clock_at
from quality.contracts import CONTRACTS

# The tests go on from each other: `make laws` has all of them, not campaigns alone.
pytestmark = pytest.mark.matrix(1)
CURRENT, HISTORY = "silver.users_current", "silver.users"
DATASETS = (CURRENT, HISTORY)
FIFTH, SIXTH, SEVENTH, EIGHTH = (f"2026-01-{day:02}" for day in (5, 6, 7, 8))


def at(time: str) -> datetime:
    return datetime.fromisoformat(f"2026-01-{time}").replace(tzinfo=timezone.utc)


@dataclass(frozen=True)
class Blog:
    """A deployment that loads the changed users of a table."""

    made: Deployment
    source: psycopg.Connection

    def add(self, time: str | None, *users: str, deleted: bool = False) -> None:
        for user in users:
            self.source.execute(
                "INSERT INTO users (id, login, registered_datetime, updated_at, is_deleted)"
                " VALUES (%s, %s, '2020-05-05 00:00+00', %s, %s)",
                [user, None if deleted else f"login-{user}", time and at(time), deleted],
            )

    def change(self, time: str, user: str, login: str | None = None, *, deleted: bool = False) -> None:
        self.source.execute(
            "UPDATE users SET login = coalesce(%s, login), is_deleted = %s, updated_at = %s WHERE id = %s",
            [login, deleted, at(time), user],
        )

    def deliver(self, day: str, *users: str) -> None:
        folder = self.made.landing / "users" / f"date={day}"
        folder.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps({"id": user, "login": f"login-{user}"}) + "\n" for user in users]
        (folder / "users.json").write_text("".join(lines))
        (folder / "_SUCCESS").touch()

    def run(self, time: str, *more: str) -> None:
        with clock_at(at(time)):
            assert self.made.run(for_=[*DATASETS, *more]).problems == []
            assert self.made.run(for_=DATASETS).runs == 0
        assert self.made.problems() == []
        assert self.made.undeclared() == set()
        assert self.current() == {user for user, valid_to in self.versions("user_id", "valid_to") if valid_to is None}

    def current(self) -> set[str]:
        return {*self.made.rows(CURRENT, "user_id")}

    def versions(self, *columns: str) -> list[Any]:
        return self.made.rows(HISTORY, *columns)

    def history_of(self, user: str) -> list[tuple[str, str | None]]:
        """Return the bounds of a user's versions, as `05 10:30`."""
        found = [row[1:] for row in self.versions("user_id", "valid_from", "valid_to") if row[0] == user]
        return sorted((f"{begin:%d %H:%M}", end and f"{end:%d %H:%M}") for begin, end in found)

    def rows(self) -> dict[str, Any]:
        names = [column.name for column in CONTRACTS[CURRENT].columns]
        return {row[names.index("user_id")]: row for row in self.made.rows(CURRENT, *names)}


@pytest.fixture(scope="module")
def blog(deploy: Deploy, postgres_server: str) -> Iterator[Blog]:
    """A deployment whose users come by their changes, and its database."""
    name = "changed_users"
    url = postgres_server.rpartition("/")[0] + f"/{name}"
    with psycopg.connect(postgres_server, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}")
        with psycopg.connect(url, autocommit=True) as source:
            source.execute(USERS)
            yield Blog(reading(deploy("changed"), url, users="users", since=FIFTH), source)
        server.execute(f"DROP DATABASE {name} WITH (FORCE)")


def test_figure_4_4_merger_inserts_updates_and_deletes_changed_users(blog: Blog) -> None:
    made = blog.made
    blog.add("05 09:00", *"abcde")
    # The first run has no rows to delete.
    blog.add("05 09:30", "never there", deleted=True)
    blog.add(None, "untimed")
    blog.add("09 00:00", "to come")
    with clock_at(at("05 10:10")):
        table_loads.load(made.settings, "users")
    blog.change("05 23:00", "b", "early")
    blog.run("05 23:10", "silver.identities")
    assert blog.current() == {*"abcde"}
    assert sorted(made.rows("bronze.users", "reasons")) == [
        *[[]] * 7,
        ["impossible_time:updated_at"],
        ["missing_field:updated_at"],
    ]
    entry = made.published(CURRENT)[FIFTH]
    assert (entry.rows_in, dict(entry.reasons)) == (9, {"dead_lettered": 2, "deleted": 1, "duplicates": 1, "kept": 0})
    # A deletion has nothing to encrypt.
    assert sorted(made.rows("silver.identities", "snapshots")) == [1] * 6

    # Insert, update and delete in one batch; of two changes of one user the newest is merged.
    before = blog.rows()
    blog.change("06 09:00", "a", "new")
    blog.change("06 09:10", "c", deleted=True)
    blog.add("06 09:20", "f")
    blog.change("06 09:30", "b", "late")
    with clock_at(at("06 09:40")):
        table_loads.load(made.settings, "users")
    blog.change("06 10:00", "b", "latest")
    blog.run("06 11:10")
    after = blog.rows()
    assert after.keys() == {*"abdef"}
    assert {user for user in before.keys() & after if before[user] != after[user]} == {*"ab"}
    assert blog.history_of("b") == [
        ("05 09:00", "05 23:00"),
        ("05 23:00", "06 09:30"),
        ("06 09:30", "06 10:00"),
        ("06 10:00", None),
    ]
    assert blog.history_of("c") == [("05 09:00", "06 09:10")]
    assert made.published(CURRENT)[SIXTH].reasons["deleted"] == 3


@pytest.fixture
def deployment(blog: Blog) -> Deployment:
    return blog.made
