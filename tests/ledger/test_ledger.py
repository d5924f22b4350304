"""The ledger's equations, and the event log they are computed from."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from blogdata.contract.publication import Account, Entry
from blogdata.ledger import ledger
from blogdata.ledger.events import EVENTS, Event, EventLog
from blogdata.table.lake import Lake
from published import publish
from toy import CONTRACT, HOURS

DATASET = CONTRACT.dataset


def published(lake: Lake, *hours: str, rows: int = 50) -> None:
    """Publish hours; their process dies before it records them."""
    content = {"hour": [hour for hour in hours for _ in range(rows)], "click": range(rows * len(hours))}
    publish(lake, DATASET, "hour", dict.fromkeys(hours, rows), content=pa.table(content))


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = Lake(root=str(tmp_path))
    published(made, *HOURS)
    return made


def problems(lake: Lake) -> dict[str, str | None]:
    return {line.entry.partition: line.problem for line in ledger.audit(lake, EventLog(lake), CONTRACT)}


def recorded(lake: Lake) -> pa.Table:
    return DeltaTable(lake.path(EVENTS)).to_pyarrow_table()


def test_rows_deleted_or_added_outside_the_platform_are_found(lake: Lake) -> None:
    DeltaTable(lake.path(DATASET)).delete("click = 7")
    rows = {"hour": [HOURS[1], "2026-01-05T09"], "click": [500, 501]}
    write_deltalake(lake.path(DATASET), pa.table(rows), mode="append")
    assert problems(lake) == {
        HOURS[0]: "50 rows were published but 49 are in the table",
        HOURS[1]: "50 rows were published but 51 are in the table",
        "2026-01-05T09": "1 rows that no publication accounts for",
    }


def test_a_publication_during_the_audit_is_no_problem(lake: Lake) -> None:
    class Racing(EventLog):
        raced = False

        def publications(self, *arguments: Any, **bounds: Any) -> dict[str, Entry]:
            if not self.raced:
                self.raced = True
                published(lake, "2026-01-05T02", rows=80)
            return super().publications(*arguments, **bounds)

    lines = ledger.audit(lake, Racing(lake), CONTRACT)
    assert [(line.rows_there, line.problem) for line in lines] == [(50, None), (50, None), (80, None)]


@pytest.mark.parametrize(
    ("above", "problem"),
    [(3, "2 rows of the layer above vanished"), (0, "1 rows more than the layer above has"), (1, None)],
)
def test_an_unbalanced_account_names_the_difference(lake_root: Path, above: int, problem: str | None) -> None:
    lake = Lake(root=str(lake_root))
    account = asdict(Account(rows_in=above))
    publish(lake, DATASET, "hour", {HOURS[0]: 1}, accounts={HOURS[0]: account})
    (line,) = ledger.audit(lake, EventLog(lake), CONTRACT)
    assert (line.problem, line.balanced) == (problem, problem is None)


def test_a_crash_before_recording_loses_no_event_and_adds_none_twice(lake: Lake) -> None:
    for _ in range(2):
        assert {entry.rows_out for entry in EventLog(lake).publications(DATASET).values()} == {50}
        assert recorded(lake).num_rows == 2


def test_the_newest_publication_of_a_partition_counts(lake: Lake) -> None:
    EventLog(lake).publications(DATASET)
    published(lake, *HOURS, rows=5)
    events = EventLog(lake)
    assert {entry.rows_out for entry in events.publications(DATASET).values()} == {5}
    assert list(events.publications(DATASET, since=HOURS[1])) == [HOURS[1]]
    assert list(events.publications(DATASET, until=HOURS[1])) == [HOURS[0]]


@pytest.mark.parametrize("begun", [True, False], ids=["in a log", "before there is one"])
def test_two_projections_add_a_missing_event_once(lake: Lake, begun: bool) -> None:
    EventLog(lake).publications(DATASET)
    published(lake, *HOURS, rows=10)
    if not begun:
        shutil.rmtree(lake.path(EVENTS))

    class Overtaken(EventLog):
        def _project(self, *arguments: Any) -> list[Event]:
            EventLog(lake).publications(DATASET)
            return super()._project(*arguments)

    assert {one.rows_out for one in Overtaken(lake).publications(DATASET).values()} == {10}
    assert list(Counter(recorded(lake)["table_version"].to_pylist()).values()) == [2, 2]
    assert len(set(recorded(lake)["event_id"].to_pylist())) == 4
