"""Stateful Merger: what a database without versions rebuilds from its raw rows is what the table's versions restore."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import psycopg
import pytest

from idempotency.executing import DAYS, Change, Table

TABLES = """
CREATE TABLE letters_history (execution TEXT, letter TEXT, says TEXT, is_deleted BOOLEAN);
CREATE TABLE letters (letter TEXT PRIMARY KEY, says TEXT);
"""
IS_BACKFILL = "SELECT count(*) > 0 FROM letters_history WHERE execution >= %s"
NEWEST_OF_EACH = """
INSERT INTO letters
SELECT letter, says FROM (
    SELECT *, row_number() OVER (PARTITION BY letter ORDER BY execution DESC) AS place FROM letters_history
) AS placed WHERE place = 1 AND NOT is_deleted
"""
MERGED = """
MERGE INTO letters USING (SELECT * FROM letters_history WHERE execution = %s) AS new ON letters.letter = new.letter
WHEN MATCHED AND is_deleted THEN DELETE
WHEN MATCHED THEN UPDATE SET says = new.says
WHEN NOT MATCHED AND NOT is_deleted THEN INSERT VALUES (new.letter, new.says)
"""
Rows = list[tuple[str, str | None]]


class WithoutVersions:
    """A table of PostgreSQL, beside the raw rows with their execution, from which it is rebuilt before a backfill."""

    def __init__(self, connection: psycopg.Connection[tuple[object, ...]]) -> None:
        self.connection = connection
        connection.execute(TABLES)
        self.restored: dict[str, Rows] = {}

    def execute(self, day: str, changes: Sequence[Change]) -> Rows:
        """Merge the changes of an execution; return the rows of the table."""
        if self.connection.execute(IS_BACKFILL, [day]).fetchone() == (True,):
            self.connection.execute("DELETE FROM letters_history WHERE execution >= %s", [day])
            self.connection.execute("TRUNCATE letters")
            self.connection.execute(NEWEST_OF_EACH)
            self.restored[day] = self.rows()
        with self.connection.cursor() as cursor:
            cursor.executemany("INSERT INTO letters_history VALUES (%s, %s, %s, %s)", [(day, *one) for one in changes])
        self.connection.execute(MERGED, [day])
        return self.rows()

    def rows(self) -> Rows:
        found: Rows = self.connection.execute("SELECT letter, says FROM letters ORDER BY 1").fetchall()  # type: ignore
        return found


@pytest.fixture
def unversioned(database: str) -> Iterator[WithoutVersions]:
    with psycopg.connect(database, autocommit=True) as connection:
        yield WithoutVersions(connection)


def test_figure_4_6_raw_rows_rebuild_what_versions_restore(daily: Table, unversioned: WithoutVersions) -> None:
    before = daily.versions()
    for day in DAYS:
        assert unversioned.execute(day, daily.deliveries[day]) == daily.rows(before[day])
    assert unversioned.restored == {}, "no execution was a backfill"

    daily.deliveries[DAYS[1]] = [("A", None, True), ("Z", "corrected", False)]
    assert daily.backfill(DAYS[1]) == list(DAYS[1:])
    after = daily.versions()
    for day in DAYS[1:]:
        assert unversioned.execute(day, daily.deliveries[day]) == daily.rows(after[day])
    restoration = after[DAYS[1]] - 1
    assert unversioned.restored == {DAYS[1]: daily.rows(restoration)} == {DAYS[1]: daily.rows(before[DAYS[0]])}
    assert unversioned.rows() == daily.rows() != daily.rows(before[DAYS[3]])
