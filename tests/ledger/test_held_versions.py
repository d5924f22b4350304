"""What a log must still tell of: commits that the event log or a companion has not read, and versions that are held."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from deltalake import DeltaTable

import published
import table_files
from blogdata.ledger.events import EVENTS, EventLog
from blogdata.runs.upkeep import first_needed, held_versions, unneeded_data, unneeded_log
from blogdata.table import unneeded
from blogdata.table.lake import Lake
from quality.contracts import CONTRACTS

ARRIVED = CONTRACTS["bronze.visits"]
PUBLICATIONS = 12


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Two months old publications, of which the event log has recorded the first ones."""
    made = Lake(root=str(tmp_path))
    for hour in range(PUBLICATIONS):
        published.bronze(made, {f"2026-01-05T{hour:02}": {f"2026-01-05T{hour:02}": 3}})
        if hour == 4:
            EventLog(made).publications(ARRIVED.dataset)
    DeltaTable(made.path(ARRIVED.dataset)).create_checkpoint()
    table_files.age(tmp_path / "bronze" / "visits", datetime.now(timezone.utc) - timedelta(days=60))
    return made


def log_files(lake: Lake, *beside: str) -> Sequence[Path]:
    return unneeded_log(lake, EventLog(lake), ARRIVED, beside, datetime.now(timezone.utc))


def test_commits_are_recorded_before_they_leave_the_log(lake: Lake) -> None:
    newest = lake.version(ARRIVED.dataset)
    assert EventLog(lake).recorded(ARRIVED.dataset) == 4
    unneeded.remove(log_files(lake))
    assert log_files(lake) == []
    assert [version for version, _ in lake.commits(DeltaTable(lake.path(ARRIVED.dataset)))] == [newest]
    history = EventLog(lake).history(ARRIVED.dataset)
    assert [entry.version for entry in history] == list(range(PUBLICATIONS))
    assert len(EventLog(lake).publications(ARRIVED.dataset)) == PUBLICATIONS


def test_what_a_companion_has_not_followed_stays_in_the_log(lake: Lake) -> None:
    events = EventLog(lake)
    assert first_needed(lake, events, ARRIVED, ()) == lake.version(ARRIVED.dataset)
    # The event log follows no table, so to it everything of the other one is still to come.
    assert first_needed(lake, events, ARRIVED, (EVENTS,)) == -1
    assert log_files(lake, EVENTS) == []


def test_what_the_reader_of_a_change_feed_has_not_read_is_held_for_thirty_days(tmp_path: Path) -> None:
    lake, now = Lake(root=str(tmp_path)), datetime.now(timezone.utc)
    followed, (reader,) = CONTRACTS["gold.audience_hourly"], CONTRACTS["gold.audience_hourly"].feeds

    def held(days: int) -> set[int]:
        return set(held_versions(lake, EventLog(lake), followed, followed.dataset, now=now + timedelta(days=days)))

    for hour in range(6):
        published.publish(lake, followed.dataset, "event_hour", {f"2026-01-05T{hour:02}": 3})
        if hour == 2:
            assert held(0) == set(), "nobody has read it"
            published.whole(lake, reader, inputs={followed.dataset: 2})
    assert held(0) == held(29) == {2, 3, 4}
    assert first_needed(lake, EventLog(lake), followed, (), now=now) == 2
    assert held(31) == set()
    published.whole(lake, reader, inputs={followed.dataset: 4})
    assert held(0) == {4}


def test_files_of_commits_that_were_lost_stay_for_the_backup_of_the_log(lake: Lake) -> None:
    """The disk has lost the end of the log; the event log knows that there was more."""
    table, log = DeltaTable(lake.path(ARRIVED.dataset)), Path(lake.path(ARRIVED.dataset)) / "_delta_log"
    events, now = EventLog(lake), datetime.now(timezone.utc)
    events.publications(ARRIVED.dataset)
    assert unneeded_data(lake, events, ARRIVED, now) == []
    backup = {file: file.read_bytes() for file in log.glob(f"*{table.version():020}*")}
    for file in [*backup, log / "_last_checkpoint"]:
        file.unlink()
    assert lake.version(ARRIVED.dataset) == table.version() - 1
    assert unneeded_data(lake, events, ARRIVED, now) == []
    for file, content in backup.items():
        file.write_bytes(content)
    assert lake.is_whole(ARRIVED.dataset, table.version())
