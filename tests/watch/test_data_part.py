"""Datasets are in time or late by the promise of their contract."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from blogdata.contract.publication import Entry
from blogdata.ledger.ledger import LedgerLine
from blogdata.watch.data_part import Freshness, state_of
from quality.contracts import EVERY

NOW = datetime(2026, 1, 20, tzinfo=timezone.utc)
ENTRY = Entry(dataset="silver.visits", partition="2026-01-05T00", version=1, rows_in=10, rows_out=8, reasons={})


@pytest.mark.parametrize(
    ("dataset", "hours", "state"),
    [
        ("silver.visits", 3, Freshness.FRESH),  # the hour itself plus the promised two hours
        ("silver.visits", 3.1, Freshness.LATE),
        ("gold.page_stats", 30.1, Freshness.LATE),  # the day itself plus the promised six hours
        ("silver.users", 48.1, Freshness.LATE),  # a table without partitions: one day plus the promised day
        ("silver.late_visits", 9999, Freshness.UNPROMISED),
    ],
)
def test_a_dataset_is_late_after_its_promise(dataset: str, hours: float, state: Freshness) -> None:
    times = (NOW - timedelta(hours=hours), NOW - timedelta(days=9999))
    lines = [LedgerLine(entry=replace(ENTRY, committed_at=at), rows_there=8, problem=None) for at in times]
    assert state_of(EVERY[dataset], lines, NOW).freshness is state


def test_unpublished_datasets_are_not_late() -> None:
    assert state_of(EVERY["silver.visits"], [], NOW).freshness is Freshness.NEVER
