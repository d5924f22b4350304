"""The versions of commits are those in their file names, even if commits are added while the log is read."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable

import published
from blogdata.contract.publication import parse
from blogdata.ledger.events import EventLog
from blogdata.table.lake import Lake

HOURS = [f"2026-01-05T{hour:02d}" for hour in range(5)]
DATASET = "silver.visits"


class Overtaken(Lake):
    """A lake in which another hour is published right after the table is opened, until all are."""

    def table(self, dataset: str) -> DeltaTable | None:
        opened = super().table(dataset)
        if opened is not None and dataset == DATASET and opened.version() + 1 < len(HOURS):
            hour(self, opened.version() + 1)
        return opened


def hour(lake: Lake, number: int) -> None:
    assert published.silver(lake, {HOURS[number]: 10 + number}, read=number) == number


@pytest.fixture
def lake(lake_root: Path) -> Lake:
    made = Lake(root=str(lake_root))
    hour(made, 0)
    return made


def opened(lake: Lake) -> DeltaTable:
    table = lake.caught_up(DATASET)
    assert table is not None
    return table


def test_later_commits_do_not_shift_the_versions(lake: Lake) -> None:
    hour(lake, 1)
    table = opened(lake)
    hour(lake, 2)
    hour(lake, 3)
    infos = [(version, parse(commit["userMetadata"])) for version, commit in lake.commits(table)]
    assert [(version, info and info["inputs"]["bronze.visits"]) for version, info in infos] == [(1, 1), (0, 0)]
    assert [version for version, _ in lake.commits(table, after=0)] == [1]
    assert [version for version, _ in lake.commits(opened(lake), after=1)] == [3, 2]


def test_an_overtaken_reader_records_every_publication_once(lake: Lake) -> None:
    events = EventLog(Overtaken(root=lake.root))
    for _ in HOURS:
        events.history(DATASET)
    recorded = [(entry.partition, entry.version, entry.rows_out) for entry in EventLog(lake).history(DATASET)]
    assert sorted(recorded) == [(key, number, 10 + number) for number, key in enumerate(HOURS)]


def test_commits_missing_from_the_log_end_the_list(lake: Lake) -> None:
    for number in range(1, 4):
        hour(lake, number)
    opened(lake).create_checkpoint()
    Path(lake.path(DATASET), "_delta_log", f"{1:020d}.json").unlink()
    assert [version for version, _ in lake.commits(opened(lake))] == [3, 2]
