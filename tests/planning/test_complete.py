"""A week that waits for every hour is computed once all are published, and from then on kept up to date; no Spark.

Pattern: Aligned Fan-In.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from blogdata.evidence.events import EventLog
from blogdata.lake.lake import Lake
from blogdata.planning.reaches import COMPLETE
from blogdata.planning.snapshot import Snapshot
from blogdata.publish.contract import Edge
from blogdata.publish.partitions import Grain, finer
from published import publish
from quality.contracts import CONTRACTS
from quality.contracts.visits_model import VIEWS

HOURLY = "silver.visits_enriched"
WEEK = "2026-01-05"
*HOURS, LAST = finer(WEEK, Grain.WEEK, Grain.HOUR)
EDGE = Edge(above=HOURLY, below=CONTRACTS[VIEWS])


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """All hours of a week but the last one, and some of the next."""
    lake = Lake(root=str(tmp_path / "lake"))
    publish(lake, HOURLY, "event_hour", dict.fromkeys([*HOURS, "2026-01-12T00"], 1))
    return lake


def behind(lake: Lake) -> list[str]:
    return [*COMPLETE.behind(Snapshot(Path(lake.root).parent / "landing", EventLog(lake)), EDGE)]


def test_a_week_waits_for_its_last_hour(lake: Lake) -> None:
    assert behind(lake) == []
    # An hour without a page view counts: its empty delivery was flagged.
    version = publish(lake, HOURLY, "event_hour", {LAST: 0})
    assert behind(lake) == [WEEK]
    publish(lake, VIEWS, "event_week", {WEEK: 1}, inputs={HOURLY: version})
    assert behind(lake) == []


def test_late_rows_change_a_published_week(lake: Lake) -> None:
    """A person asked for it before it was complete, and it stays up to date like all others."""
    publish(lake, VIEWS, "event_week", {WEEK: 1}, inputs={HOURLY: lake.version(HOURLY) or 0})
    assert behind(lake) == []
    publish(lake, HOURLY, "event_hour", {HOURS[7]: 2})
    assert behind(lake) == [WEEK]


def test_a_replay_reaches_the_weeks_that_are_complete_with_it(lake: Lake) -> None:
    look = Snapshot(Path(lake.root).parent / "landing", EventLog(lake))
    assert COMPLETE.reached(look, EDGE, {HOURLY: {HOURS[0]: ""}}, {}) == {}
    assert COMPLETE.reached(look, EDGE, {HOURLY: {LAST: "", "2026-01-12T00": ""}}, {}) == {WEEK: LAST}
