"""A table of a database is a source as files are: the same rows, guards and account.

Patterns: Full Loader, Incremental Loader.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone

import psycopg
import pytest

from assets import table_loads
from lineage.conftest import Deploy
from lineage.deployment import Deployment, event
from lineage.tables import DEVICES, LEGACY_VISITS, reading

ROWS = [("PC", "Work station", "1"), ("Phone", None, "14.10"), ("Phone", 'The "ü" \\ one', "15"), ("", "Nothing", "2")]
COLUMNS = ("type", "full_name", "version", "reasons")


@pytest.fixture(scope="module")
def blog(deploy: Deploy) -> Deployment:
    return deploy("tables")


@pytest.fixture
def source(database: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(DEVICES)
        connection.cursor().executemany("INSERT INTO devices VALUES (%s, %s, %s)", ROWS)
        yield connection


@contextmanager
def clock_at(moment: datetime) -> Iterator[None]:
    """Have the platform plan at another time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("blogdata.planning.clock.now", lambda: moment)
        yield


@pytest.fixture
def loading(blog: Deployment, database: str) -> Deployment:
    return reading(blog, database, devices="devices")


def test_full_loader_of_a_table_has_the_rows_of_files_and_their_guards(
    loading: Deployment, source: psycopg.Connection
) -> None:
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
        assert table_loads.due(loading.settings, loading.events) == ["devices"]
        assert table_loads.load(loading.settings, "devices")["rows"] == 5
    assert loading.problems() == []


def _visit(source: psycopg.Connection, page: str, at: str, came: str | None) -> None:
    source.execute(
        "INSERT INTO legacy_visits (visit_id, event_time, user_id, page, browser, device_version, ingestion_time)"
        " VALUES (%s, %s, 7, %s, 'Lynx', 14.10, %s)",
        [f"visit-{page}", f"2026-01-05 {at}+00", page, came and f"2026-01-05 {came}+00"],
    )


def test_incremental_loader_brings_each_event_once_and_takes_deleted_ones_out(deploy: Deploy, database: str) -> None:
    made = reading(deploy("legacy"), database, legacy_visits="legacy_visits", since="2026-01-05")
    made.land("2026-01-05T10", [event("10:05", "/both"), event("10:06", "/web")])
    with psycopg.connect(database, autocommit=True) as source:
        source.execute(LEGACY_VISITS)
        for page, at, came in [
            ("/both", "10:05", "10:59:59.999999"),
            ("/b", "10:07", "10:30"),
            ("/c", "10:08", "11:00"),
            ("/untimed", "10:09", None),
            ("/to come", "10:10", "23:00"),
        ]:
            _visit(source, page, at, came)
        with clock_at(datetime(2026, 1, 5, 12, 10, tzinfo=timezone.utc)):
            assert made.run(for_=["silver.visits", "bronze.dead_letters"]).problems == []
            assert sorted(made.rows("silver.visits", "page", "occurrences")) == [
                ("/b", 1), ("/both", 2), ("/c", 1), ("/web", 1),
            ]  # fmt: skip
            assert sorted(made.rows("bronze.dead_letters", "reasons")) == [
                ["impossible_time:ingestion_time"],
                ["missing_field:ingestion_time"],
            ]
            assert made.rows("silver.visits", "user_id", "device_version").count(("7", "14.10")) == 3
            assert made.run(for_=["silver.visits"]).runs == 0

        # Deleted, the way in which it was loaded or another one; and one of these is inserted once more.
        source.execute(
            "UPDATE legacy_visits SET is_deleted = true, ingestion_time = '2026-01-05 12:20+00'"
            " WHERE page IN ('/b', '/both', '/c')"
        )
        _visit(source, "/c", "10:08", "13:00")
        with clock_at(datetime(2026, 1, 5, 14, 10, tzinfo=timezone.utc)):
            assert made.run(for_=["silver.visits"]).problems == []
    assert sorted(made.rows("silver.visits", "page", "occurrences")) == [("/c", 2), ("/web", 1)]
    # Three rows that delete, and the three rows that they deleted.
    assert made.published("silver.visits")["2026-01-05T10"].reasons["filtered.deleted"] == 6
    assert made.problems() == []
    assert made.undeclared() == set()


def _known(rows: list[tuple[object, ...]]) -> list[str]:
    return sorted(repr([value or None for value in row]) for row in rows)
