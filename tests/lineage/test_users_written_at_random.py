"""A table of users, whatever its writers do and however often the loader is killed, is what silver has of it.

Patterns: Incremental Loader, Merger.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import time
from dataclasses import dataclass, field
from datetime import datetime, timezone

import psycopg
import pytest

import oracle_users
from assets import table_loads
from lineage.conftest import Deploy
from lineage.deployment import Deployment
from lineage.tables import USERS, reading
from lineage.test_tables_as_sources import clock_at

FIFTH, SEVENTH = "2026-01-05", "2026-01-07"
NOW = datetime(2026, 1, 7, 23, 59, tzinfo=timezone.utc)
MADE = f"""
    {USERS};
    ALTER TABLE users ALTER registered_datetime SET DEFAULT '2020-05-05 00:00+00';
    CREATE INDEX ON users (updated_at)
"""
INSERT = "INSERT INTO users (id, login, updated_at) VALUES (%s, 'new', %s)"
# A later state has a later time, or the same one; several rows may share it. No row is again what it was at one time.
LATER = "updated_at = greatest(updated_at, %s)"
CHANGES = {
    "update": f"UPDATE users SET login = login || 'x', {LATER} WHERE id = %s AND NOT is_deleted",
    "soft": f"UPDATE users SET is_deleted = true, login = login || 'd', {LATER} WHERE id = %s AND NOT is_deleted",
    "back": f"UPDATE users SET is_deleted = false, login = login || 'y', {LATER} WHERE id = %s AND is_deleted",
}


@dataclass
class Writers:
    """Change the table as its writers do: with new times, but for hard deletes."""

    source: psycopg.Connection
    draw: random.Random
    made: list[str] = field(default_factory=list)
    slow: list[psycopg.Connection] = field(default_factory=list)

    def new(self) -> str:
        self.made.append(f"user-{len(self.made)}")
        return self.made[-1]

    def change(self) -> None:
        clock = self.draw.choice(("00:00:00", "06:30:00", "12:00:00", "23:59:59.999999"))
        at = f"2026-01-0{self.draw.choice('567')} {clock}+00"
        some = self.draw.choice(self.made) if self.made else ""
        kind = self.draw.choice(("insert", "insert", *CHANGES, *CHANGES, "hard", "key", "begin", "end", "null"))
        if kind in CHANGES:
            self.source.execute(CHANGES[kind], [at, some])
        elif kind in ("insert", "null"):
            self.source.execute(INSERT, [self.new(), at if kind == "insert" else None])
        elif kind == "hard":
            self.source.execute("DELETE FROM users WHERE id = %s", [some])
        elif kind == "key":
            self.source.execute(f"UPDATE users SET id = %s, {LATER} WHERE id = %s", [self.new(), at, some])
        elif kind == "begin" and len(self.slow) < 3:
            self.slow.append(psycopg.connect(self.source.info.dsn, password=self.source.info.password))
            self.slow[-1].execute(INSERT, [self.new(), at])
        elif kind == "end" and self.slow:
            self.end()

    def end(self) -> None:
        connection = self.slow.pop(0)
        connection.commit()
        connection.close()


def _load(made: Deployment) -> dict[str, object]:
    return table_loads.load_windows(made.settings, table_loads.USERS, [FIFTH, SEVENTH])


def _killed(made: Deployment, after: float) -> None:
    process = multiprocessing.get_context("fork").Process(target=_load, args=(made,))
    process.start()
    time.sleep(after)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()


def _landed(made: Deployment) -> list[oracle_users.Row]:
    """Read the landed changes with a usable time."""
    found = []
    for file in made.landing.glob("users/date=*/users_table-[0-9]*.jsonl"):
        offset = 0
        for raw in file.read_bytes().splitlines(keepends=True):
            line = json.loads(raw)
            row = oracle_users.Row(
                day=int(file.parent.name[-2:]),
                user=line["id"],
                login=line["login"],
                at=datetime.fromisoformat(line["updated_at"]),
                deleted=line["is_deleted"],
                file=int(file.stem.rpartition("-")[2]),
                offset=offset,
            )
            found.append(row)
            offset += len(raw)
    return found


@pytest.mark.parametrize("seconds", [4, pytest.param(180, marks=pytest.mark.campaign)])
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_incremental_loader_and_merger_have_the_users_of_the_table(deploy: Deploy, database: str, seconds: int) -> None:
    made = reading(deploy(f"random-{seconds}"), database, users="users", since=FIFTH)
    kills = 0
    with psycopg.connect(database, autocommit=True) as source, clock_at(NOW):
        source.execute(MADE)
        writers = Writers(source, random.Random(f"{seconds}"))
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for _ in range(writers.draw.randint(1, 40)):
                writers.change()
            if writers.draw.random() < 0.7:
                _killed(made, writers.draw.uniform(0, 0.08))
                kills += 1
            else:
                _load(made)
        while writers.slow:
            writers.end()
        found = _load(made)
        assert made.run(for_=["silver.users_current", "silver.users", "silver.identities"]).problems == []
        there = source.execute("SELECT id, login, updated_at, is_deleted FROM users").fetchall()
    assert kills > 5
    rows = _landed(made)
    now = {user: (login, at, gone) for user, login, at, gone in there if at is not None}

    # Every row of the table is in bronze once; besides them only earlier states of rows, and rows that are gone.
    bronze = made.rows("bronze.users", "id", "login", "updated_at", "is_deleted")
    assert {(user, *values) for user, values in now.items()} <= set(bronze)
    untimed = [line for file in made.landing.rglob("users_table-untimed-*") for line in file.read_bytes().splitlines()]
    assert len(bronze) == len(set(bronze)) == len(rows) + len(set(untimed))
    assert len(untimed) == len(set(untimed)) >= sum(at is None for *_, at, _ in there)

    # The newest landed state of a user is that of the table, unless the table has him no more.
    newest: dict[str, oracle_users.Row] = {}
    for row in sorted(rows, key=lambda row: (row.instant, row.order)):
        newest[row.user] = row
    assert {user: (row.login, row.at, row.deleted) for user, row in newest.items() if user in now} == now
    unseen = newest.keys() - now.keys()
    assert found["hard deletes, unseen"] == len(unseen)
    current = made.rows("silver.users_current", "user_id")
    assert len(current) == len(set(current))
    assert set(current) == {user for user, row in newest.items() if not row.deleted}
    assert set(current) - unseen == {user for user, (_, _, gone) in now.items() if not gone}

    versions, left_out = oracle_users.versions(rows)
    history = made.rows("silver.users", "user_id", "valid_from", "valid_to", "snapshots")
    assert sorted(history, key=repr) == sorted(((user, *rest) for user, _, *rest in versions), key=repr)
    assert made.published("silver.users")[""].reasons["deleted"] == left_out
    logins = made.asked("SELECT user_id, login FROM silver.users_current_whole")
    assert dict(logins) == {user: row.login for user, row in newest.items() if not row.deleted}
    assert made.problems() == []
