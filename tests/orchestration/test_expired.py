"""What has expired is not delivered any more: its rows are gone."""

from __future__ import annotations

from pathlib import Path

import pytest

from assets.serving import page_files
from blogdata.evidence.events import EventLog
from blogdata.lake import expiry
from blogdata.lake.lake import Lake
from blogdata.orchestration import partner
from blogdata.orchestration.sinks import published_by_all
from blogdata.services import config
from published import publish
from quality.contracts import CONTRACTS

RUN = {"run_id": "expires", "code_version": "test"}


def published(lake: Lake, dataset: str, first: str, second: str) -> EventLog:
    """Publish two partitions of a dataset; the first one expires."""
    column = CONTRACTS[dataset].partition_column
    assert column is not None
    publish(lake, dataset, column, {first: 1, second: 1})
    events = EventLog(lake)
    assert len(events.publications(dataset)) == 2
    expiry.leave(lake, dataset, column, [first], run=RUN)
    return events


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(root=str(tmp_path / "lake"))


def test_days_are_not_served(lake: Lake) -> None:
    events = published(lake, "gold.page_stats", "2026-01-05", "2026-01-06")
    assert [*published_by_all(events, ["gold.page_stats"])] == ["2026-01-06"]


def test_hours_are_not_sent_to_the_partner(lake: Lake, tmp_path: Path) -> None:
    events = published(lake, "silver.visits_enriched", "2026-01-05T00", "2026-01-05T01")
    box = partner.outbox(config.load(overrides={"BLOGDATA_HOME": str(tmp_path)}))
    assert partner.untaken(box, events, "silver.visits_enriched") == ["2026-01-05T01"]


def test_days_are_not_written_as_files(lake: Lake, tmp_path: Path) -> None:
    events = published(lake, page_files.SOURCE.dataset, "2026-01-05", "2026-01-06")
    assert [*page_files.due(lake, events, tmp_path / "files")] == ["2026-01-06"]
