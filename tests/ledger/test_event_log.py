"""The event log stays fast to read and keeps every event exactly once, through concurrent compactions."""

from __future__ import annotations

import itertools
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import published
from blogdata.errors import ConfigurationError
from blogdata.ledger import events
from blogdata.ledger.events import EVENTS, Event, EventLog
from blogdata.table import store
from blogdata.table.faults import LogDamaged
from blogdata.table.lake import Lake

HOUR = "2026-01-05T10"


@pytest.fixture
def lake(lake_root: Path) -> Lake:
    made = Lake(root=str(lake_root))
    for rows in range(3):
        one_more(made, rows)
    return made


def one_more(lake: Lake, rows: int) -> None:
    published.silver(lake, {HOUR: rows}, read=0)
    EventLog(lake).publications("silver.visits")


def opened(lake: Lake) -> DeltaTable:
    table = lake.table(EVENTS)
    assert table is not None
    return table


def recorded(lake: Lake) -> list[int]:
    return [entry.rows_out for entry in EventLog(lake).history("silver.visits")]


def test_what_an_earlier_version_published_is_refused_with_the_way_on(lake: Lake) -> None:
    EventLog(lake).append(
        [Event(kind=events.PUBLICATION, dataset="silver.visits", partition=HOUR, table_version=1, payload={})]
    )
    with pytest.raises(ConfigurationError, match="an earlier version has published it") as refused:
        EventLog(lake).history("silver.visits")
    assert "begin a new home" in str(refused.value)


def test_a_stale_compaction_is_refused_and_loses_nothing(lake: Lake) -> None:
    before = opened(lake)
    one_more(lake, 3)
    assert not lake.compact(EVENTS, before)
    assert recorded(lake) == [0, 1, 2, 3]
    assert lake.compact(EVENTS, opened(lake))
    one_more(lake, 4)
    assert recorded(lake) == [0, 1, 2, 3, 4]


def test_an_append_overtaken_by_compaction_is_retried(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def overtaken(log: DeltaTable | str, rows: pa.Table, *, mode: Literal["append", "overwrite"], **how: Any) -> None:
        calls.append(mode)
        if calls == ["append"]:
            log = opened(lake)
            assert lake.compact(EVENTS, opened(lake))
        write_deltalake(log, rows, mode=mode, **how)

    monkeypatch.setattr(store, "write_deltalake", overtaken)
    EventLog(lake).append([Event(kind="noted", dataset="silver.visits", partition=HOUR)])
    assert calls == ["append", "overwrite", "append"]
    assert [event.partition for event in EventLog(lake).notes("noted")] == [HOUR]
    assert recorded(lake) == [0, 1, 2]


def test_two_writers_at_once_begin_one_log(lake_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def together(*values: Any, **how: Any) -> None:
        # The loser retries alone.
        if next(calls) < 2:
            barrier.wait(60)
        write_deltalake(*values, **how)

    def begin(number: int) -> None:
        EventLog(lake).append([Event(kind="noted", dataset="silver.visits", partition=str(number))])

    for attempt in range(2):
        lake, barrier, calls = Lake(root=str(lake_root / str(attempt))), threading.Barrier(2), itertools.count()
        published.silver(lake, {HOUR: 7}, read=0)
        with monkeypatch.context() as patch, ThreadPoolExecutor(2) as both:
            patch.setattr(store, "write_deltalake", together)
            list(both.map(begin, range(2)))
        assert recorded(lake) == [7]
        assert sorted(str(event.partition) for event in EventLog(lake).notes("noted")) == ["0", "1"]
        commits = sorted(Path(lake.path(EVENTS), "_delta_log").glob("*.json"))
        assert sum('"metaData"' in commit.read_text() for commit in commits) == 1


def test_a_growing_log_is_compacted_and_checkpointed(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "COMPACT_EVERY", 4)
    monkeypatch.setattr(events, "CHECKPOINT_EVERY", 3)
    for rows in range(3, 9):
        one_more(lake, rows)
    assert recorded(lake) == list(range(9))
    assert len(opened(lake).file_uris()) <= 4
    assert list(Path(lake.path(EVENTS), "_delta_log").glob("*.checkpoint.parquet"))


def test_readers_notice_a_log_that_was_replaced_or_cut_off(lake: Lake) -> None:
    log = EventLog(lake)
    folder = Path(opened(lake).table_uri.removeprefix("file://"))
    assert log.recorded("silver.visits") == 2
    other = Lake(root=f"{lake.root}-other")
    for rows in range(5, 8):
        one_more(other, rows)
    shutil.rmtree(folder)
    assert log.recorded("silver.visits") == -1
    shutil.copytree(Path(other.path(EVENTS)), folder)
    assert [entry.rows_out for entry in log.history("silver.visits")] == [5, 6, 7]
    newest = max((folder / "_delta_log").glob("*.json"))
    newest.chmod(0o644)
    newest.write_bytes(newest.read_bytes()[:40])
    with pytest.raises(LogDamaged):
        log.recorded("silver.visits")
