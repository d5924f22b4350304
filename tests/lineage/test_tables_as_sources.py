"""A table of a database is a source as files are: the same rows, guards and account.

Patterns: Full Loader, Incremental Loader, Merger, Stateful Merger.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from itertools import pairwise
from typing import Any

import psycopg
import pytest

from assets import table_loads
from lineage.conftest import Deploy
from lineage.deployment import Deployment, event
from lineage.tables import DEVICES, LEGACY_VISITS, USERS, reading
from quality.contracts import CONTRACTS

ROWS = [("PC", "Work station", "1"), ("Phone", None, "14.10"), ("Phone", 'The "ü" \\ one', "15"), ("", "Nothing", "2")]
COLUMNS = ("type", "full_name", "version", "reasons")
CURRENT, HISTORY = "silver.users_current", "silver.users"
DATASETS = ("silver.visits", "silver.identities", CURRENT, HISTORY)


@contextmanager
def clock_at(moment: datetime) -> Iterator[None]:
    """Have the platform plan at another time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("blogdata.planning.clock.now", lambda: moment)
        yield


def test_full_loader_of_a_table_has_the_rows_of_files_and_their_guards(deploy: Deploy, database: str) -> None:
    loading = reading(deploy("tables"), database, devices="devices")
    with psycopg.connect(database, autocommit=True) as source:
        source.execute(DEVICES)
        source.cursor().executemany("INSERT INTO devices VALUES (%s, %s, %s)", ROWS)
        assert loading.run(for_=["bronze.devices"]).problems == []
        reasons = {row: ["missing_field:type"] if row[0] == "" else [] for row in ROWS}
        assert _known(loading.rows("bronze.devices", *COLUMNS)) == _known([(*row, reasons[row]) for row in ROWS])
        assert loading.problems() == []
        before = loading.versions()

        # Nothing is loaded twice a day, unless a person asks for it.
        assert loading.run(for_=["bronze.devices"]).runs == 0

        # Tomorrow's load finds the table empty: nothing is replaced, and both counts are said.
        with clock_at(datetime.now(timezone.utc) + timedelta(days=1)):
            source.execute("TRUNCATE devices")
            refused = loading.run(for_=["bronze.devices"])
            assert "the source has 0 rows, the last load had 4" in str(refused.problems)
            assert loading.versions()["bronze.devices"] == before["bronze.devices"]
            assert len(loading.rows("bronze.devices", "type")) == 4

            # Mended at the source, it is loaded again by the next run.
            source.cursor().executemany("INSERT INTO devices VALUES (%s, %s, %s)", [*ROWS, ("Tablet", "New", "1")])
            assert table_loads.due(loading.settings, loading.events.publications) == ["devices"]
            assert table_loads.load(loading.settings, "devices")["rows"] == 5
    assert loading.problems() == []


def at(time: str) -> datetime:
    """Return a time of January 2026, `05 10:30`."""
    return datetime.fromisoformat(f"2026-01-{time}").replace(tzinfo=timezone.utc)


@dataclass(frozen=True)
class Blog:
    """A deployment that loads the visits and the changed users of tables."""

    made: Deployment
    source: psycopg.Connection

    def visit(self, page: str, time: str, came: str) -> None:
        self.source.execute(
            "INSERT INTO legacy_visits (visit_id, event_time, user_id, page, browser, device_version, ingestion_time)"
            " VALUES (%s, %s, 7, %s, 'Lynx', 14.10, %s)",
            [f"visit-{page}", at(time), page, at(came)],
        )

    def user(self, time: str, *users: str, deleted: bool = False) -> None:
        for user in users:
            self.source.execute(
                "INSERT INTO users (id, login, registered_datetime, updated_at, is_deleted)"
                " VALUES (%s, %s, '2020-05-05 00:00+00', %s, %s)",
                [user, None if deleted else f"login-{user}", at(time), deleted],
            )

    def change(self, time: str, user: str, login: str | None = None, *, deleted: bool = False) -> None:
        self.source.execute(
            "UPDATE users SET login = coalesce(%s, login), is_deleted = %s, updated_at = %s WHERE id = %s",
            [login, deleted, at(time), user],
        )

    def load_users(self, time: str) -> None:
        with clock_at(at(time)):
            table_loads.load(self.made.settings, "users")

    def run(self, time: str) -> None:
        with clock_at(at(time)):
            assert self.made.run(for_=DATASETS).problems == []
            assert self.made.run(for_=DATASETS).runs == 0
        assert self.made.problems() == []
        assert self.made.undeclared() == set()
        versions = self.made.rows(HISTORY, "user_id", "valid_to")
        assert {*self.current()} == {user for user, valid_to in versions if valid_to is None}

    def current(self) -> dict[str, Any]:
        """Return the rows of the current users by their identifiers."""
        names = [column.name for column in CONTRACTS[CURRENT].columns]
        return {row[names.index("user_id")]: row for row in self.made.rows(CURRENT, *names)}

    def history_of(self, user: str) -> list[tuple[str, str | None]]:
        """Return the bounds of a user's versions, as `05 10:30`."""
        rows = self.made.rows(HISTORY, "user_id", "valid_from", "valid_to")
        return sorted((f"{begin:%d %H:%M}", end and f"{end:%d %H:%M}") for owner, begin, end in rows if owner == user)


def test_changed_rows_of_tables_come_once_and_deleted_ones_go(deploy: Deploy, database: str) -> None:
    """Of events by the hour of their ingestion, and of users by their changes, merged by their key (figure 4-4)."""
    made = reading(deploy("changes"), database, legacy_visits="legacy_visits", users="users", since="2026-01-05")
    made.land("2026-01-05T10", [event("10:05", "/both"), event("10:06", "/web")])
    with psycopg.connect(database, autocommit=True) as source:
        blog = Blog(made, source)
        source.execute(LEGACY_VISITS)
        source.execute(USERS)
        blog.visit("/both", "05 10:05", "05 10:59:59.999999")
        blog.visit("/b", "05 10:07", "05 10:30")
        blog.visit("/c", "05 10:08", "05 11:00")
        blog.user("05 09:00", *"abcde")
        # The first run has no rows to delete.
        blog.user("05 09:30", "never there", deleted=True)
        blog.load_users("05 10:10")
        blog.change("05 11:00", "b", "early")
        blog.run("05 12:10")
        assert sorted(made.rows("silver.visits", "page", "occurrences")) == [
            ("/b", 1), ("/both", 2), ("/c", 1), ("/web", 1),
        ]  # fmt: skip
        assert made.rows("silver.visits", "user_id", "device_version").count(("7", "14.10")) == 3
        assert blog.current().keys() == {*"abcde"}
        entry = made.published(CURRENT)["2026-01-05"]
        assert (entry.rows_in, dict(entry.reasons)) == (
            7,
            {"dead_lettered": 0, "deleted": 1, "duplicates": 1, "kept": 0},
        )
        # A deletion has nothing to encrypt.
        assert sorted(made.rows("silver.identities", "snapshots")) == [1] * 6

        # Deleted, the way in which it was loaded or another one; and one of these is inserted once more.
        source.execute(
            "UPDATE legacy_visits SET is_deleted = true, ingestion_time = '2026-01-05 12:20+00'"
            " WHERE page IN ('/b', '/both', '/c')"
        )
        blog.visit("/c", "05 10:08", "05 13:00")
        # Insert, update and delete in one batch; of two changes of one user the newest is merged.
        before = blog.current()
        blog.change("06 00:05", "a", "new")
        blog.change("06 00:10", "c", deleted=True)
        blog.user("06 00:20", "f")
        blog.change("06 00:30", "b", "late")
        blog.load_users("06 00:40")
        blog.change("06 00:50", "b", "latest")
        blog.run("06 01:10")
    assert sorted(made.rows("silver.visits", "page", "occurrences")) == [("/c", 2), ("/web", 1)]
    # Three rows that delete, and the three rows that they deleted.
    assert made.published("silver.visits")["2026-01-05T10"].reasons["filtered.deleted"] == 6
    after = blog.current()
    assert after.keys() == {*"abdef"}
    assert {user for user in before.keys() & after if before[user] != after[user]} == {*"ab"}
    moments = ("05 09:00", "05 11:00", "06 00:30", "06 00:50", None)
    assert blog.history_of("b") == [*pairwise(moments)]
    assert blog.history_of("c") == [("05 09:00", "06 00:10")]
    assert made.published(CURRENT)["2026-01-06"].reasons["deleted"] == 3


def _known(rows: list[tuple[object, ...]]) -> list[str]:
    return sorted(repr([value or None for value in row]) for row in rows)
