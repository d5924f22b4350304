"""The ledger's equations, and the event log they are computed from."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from blogdata.evidence import ledger
from blogdata.evidence.events import EventLog
from blogdata.lake.commit import Account, Entry
from blogdata.lake.lake import Lake
from blogdata.patterns.idempotency.data_overwrite import overwrite_partitions
from blogdata.publish.target import Provenance
from published import publish
from toy import CONTRACT, HOURS, accounts, clicks, target


def published(spark: Any, root: Path, run: str = "run-1", rows: int = 100) -> tuple[Lake, EventLog]:
    commit = overwrite_partitions(clicks(spark, rows), target(root, run), HOURS, Provenance(accounts=accounts(rows)))
    lake = Lake(root=str(root))
    events = EventLog(lake)
    events.record(commit)
    return lake, events


@pytest.fixture(scope="module")
def hundred(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with a hundred published clicks."""
    root = tmp_path_factory.mktemp("hundred") / "lake"
    published(spark, root)
    return root


@pytest.fixture
def lake(hundred: Path, tmp_path: Path) -> Lake:
    """A copy of that lake for each test."""
    return Lake(root=str(shutil.copytree(hundred, tmp_path / "lake")))


@pytest.fixture
def events(lake: Lake) -> EventLog:
    return EventLog(lake)


def test_a_sound_publication_adds_up(lake: Lake, events: EventLog) -> None:
    lines = ledger.audit(lake, events, CONTRACT)
    assert [line.entry.partition for line in lines] == list(HOURS)
    assert all(line.balanced for line in lines)
    assert sum(line.rows_there for line in lines) == 100


def test_a_row_deleted_outside_the_platform_is_found(spark: Any, lake: Lake, events: EventLog) -> None:
    spark.sql(f"DELETE FROM delta.`{lake.path(CONTRACT.dataset)}` WHERE click = 7")
    problems = [line.problem for line in ledger.audit(lake, events, CONTRACT)]
    assert problems == [None, "50 rows were published but 49 are in the table"]


def test_a_row_added_outside_the_platform_is_found(spark: Any, lake: Lake, events: EventLog) -> None:
    clicks(spark, 1, first=500).write.format("delta").mode("append").save(lake.path(CONTRACT.dataset))
    problems = [line.problem for line in ledger.audit(lake, events, CONTRACT)]
    assert problems == ["50 rows were published but 51 are in the table", None]


def test_rows_in_an_unpublished_partition_are_found(spark: Any, lake: Lake, events: EventLog) -> None:
    stray = clicks(spark, 1).selectExpr("'2026-01-05T09' AS hour", "click", "stands_for", "page")
    stray.write.format("delta").mode("append").save(lake.path(CONTRACT.dataset))
    problems = {line.entry.partition: line.problem for line in ledger.audit(lake, events, CONTRACT)}
    assert problems["2026-01-05T09"] == "1 rows that no publication accounts for"


def test_a_publication_during_the_audit_is_no_problem(spark: Any, lake: Lake) -> None:
    class Racing(EventLog):
        raced = False

        def publications(self, *arguments: Any, **bounds: Any) -> dict[str, Entry]:
            if not self.raced:
                self.raced = True
                published(spark, Path(lake.root), run="run-2", rows=80)
            return super().publications(*arguments, **bounds)

    lines = ledger.audit(lake, Racing(lake), CONTRACT)
    assert [(line.rows_there, line.problem) for line in lines] == [(40, None), (40, None)]


@pytest.mark.parametrize(
    ("above", "problem"),
    [
        (3, "2 rows of the layer above vanished"),
        (0, "1 rows more than the layer above has"),
        (1, None),
    ],
)
def test_an_unbalanced_account_names_the_difference(lake_root: Path, above: int, problem: str | None) -> None:
    lake = Lake(root=str(lake_root))
    account = Account(rows_in=above).as_json()
    publish(lake, CONTRACT.dataset, "hour", {HOURS[0]: 1}, accounts={HOURS[0]: account})
    (line,) = ledger.audit(lake, EventLog(lake), CONTRACT)
    assert (line.problem, line.balanced) == (problem, problem is None)


@pytest.fixture(scope="module")
def died(spark: Any, hundred: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """That lake with a second publication, whose process died before it was recorded."""
    root = Path(shutil.copytree(hundred, tmp_path_factory.mktemp("died") / "lake"))
    overwrite_partitions(clicks(spark, 10), target(root, "died"), HOURS, Provenance(accounts=accounts(10)))
    return root


def test_a_crash_before_recording_loses_no_event(died: Path, tmp_path: Path) -> None:
    # The next reader finds the commit without its event.
    lake = Lake(root=str(shutil.copytree(died, tmp_path / "lake")))
    assert {entry.run_id for entry in EventLog(lake).publications(CONTRACT.dataset).values()} == {"died"}
    assert all(line.balanced for line in ledger.audit(lake, EventLog(lake), CONTRACT))


def test_reading_a_complete_log_adds_no_events(lake: Lake, events: EventLog) -> None:
    rows = lake.caught_up("ops.events").to_pyarrow_table().num_rows  # type: ignore[union-attr]
    events.publications(CONTRACT.dataset)
    assert lake.caught_up("ops.events").to_pyarrow_table().num_rows == rows == 2  # type: ignore[union-attr]


def test_the_newest_publication_of_a_partition_counts(spark: Any, lake: Lake, events: EventLog) -> None:
    published(spark, Path(lake.root), "run-2", rows=10)
    entries = events.publications(CONTRACT.dataset)
    assert {entry.rows_out for entry in entries.values()} == {5}
    assert list(events.publications(CONTRACT.dataset, since=HOURS[1])) == [HOURS[1]]
    assert list(events.publications(CONTRACT.dataset, until=HOURS[1])) == [HOURS[0]]
    assert lake.row_counts(CONTRACT.dataset, "hour") == {HOURS[0]: 5, HOURS[1]: 5}


@pytest.mark.parametrize("begun", [True, False], ids=["in a log", "before there is one"])
def test_two_projections_add_a_missing_event_once(died: Path, tmp_path: Path, begun: bool) -> None:
    lake = Lake(root=str(shutil.copytree(died, tmp_path / "lake")))
    if not begun:
        shutil.rmtree(lake.path("ops.events"))

    class Overtaken(EventLog):
        def _project(self, *arguments: Any) -> int:
            EventLog(lake).publications(CONTRACT.dataset)
            return super()._project(*arguments)

    assert {one.run_id for one in Overtaken(lake).publications(CONTRACT.dataset).values()} == {"died"}
    recorded = lake.caught_up("ops.events").to_pyarrow_table()  # type: ignore[union-attr]
    assert list(Counter(recorded["table_version"].to_pylist()).values()) == [2, 2]
    assert len(set(recorded["event_id"].to_pylist())) == 4
