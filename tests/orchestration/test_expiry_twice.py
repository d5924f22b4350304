"""Two removals of what has expired, at the same time: each partition leaves once, and is counted once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa

from blogdata.evidence import ledger
from blogdata.evidence.events import EventLog
from blogdata.lake.lake import Lake
from blogdata.operations.retention import Retention
from blogdata.patterns.ingestion.readiness_marker import LandingZone
from blogdata.planning import expiry
from blogdata.planning.graph import Graph, Task
from blogdata.planning.snapshot import Snapshot
from blogdata.publish.run import RunContext
from published import publish
from quality.contracts import CONTRACTS

ENRICHED = "silver.visits_enriched"
HOURS = [f"2026-01-05T{hour:02d}" for hour in range(3)]
ENDED = datetime(2026, 1, 6, 1, tzinfo=timezone.utc)
"""With one day of retention, the first hour is over."""


class Slow(Retention):
    """It has found what is over, and begins to remove it only when another removal has ended."""

    def _leave(self, task: Task, over: Sequence[str], now: datetime) -> Mapping[str, int]:
        other = Retention(events=EventLog(self.events.lake), zone=self.zone, graph=self.graph, run=self.run)
        other.expire(now)
        return super()._leave(task, over, now)


def test_a_removal_that_comes_second_counts_nothing(tmp_path: Path) -> None:
    lake = Lake(root=str(tmp_path))
    rows = pa.table({"event_hour": [hour for hour in HOURS for _ in range(4)], "row": range(12)})
    publish(lake, ENRICHED, "event_hour", dict.fromkeys(HOURS, 4), content=rows)
    lineage = Graph(contracts={**CONTRACTS, ENRICHED: replace(CONTRACTS[ENRICHED], retention_days=1)})
    run = RunContext(run_id="expires", job="", code_version="test")
    slow = Slow(events=EventLog(lake), zone=LandingZone.of(tmp_path / "landing"), graph=lineage, run=run)
    assert slow.expire(ENDED).rows_of == {}
    assert EventLog(lake).publications(ENRICHED)[HOURS[0]].expired == 4
    assert [line.problem for line in ledger.audit(lake, EventLog(lake), CONTRACTS[ENRICHED])] == [None] * 3
    look = Snapshot(slow.zone, EventLog(lake))
    assert expiry.over(look, lineage, lineage.task_of(ENRICHED), ENDED + timedelta(hours=1)) == (HOURS[1],)
