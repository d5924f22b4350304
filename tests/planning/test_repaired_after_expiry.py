"""A repair has what is kept of a dataset computed again; what has expired stays so, and its readers keep their rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa
import pytest

from blogdata.evidence.events import EventLog
from blogdata.lake import expiry
from blogdata.lake.lake import Lake
from blogdata.planning.expiry import InputExpired, PartitionExpired
from blogdata.planning.plan import Planner
from blogdata.planning.snapshot import Snapshot
from blogdata.publish.run import RunContext
from published import publish
from quality.contracts import GRAPH

HOURS = [f"2026-01-05T{hour:02d}" for hour in range(3)]
DAY = "2026-01-05"
ENRICHED, PAGES = "silver.visits_enriched", "gold.page_stats"
RUN = RunContext(run_id="expires", job="", code_version="test")


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Three hours, of which the first has expired, and their day."""
    made = Lake(root=str(tmp_path))
    rows = {"event_hour": HOURS, "row": range(3)}
    read = publish(made, ENRICHED, "event_hour", dict.fromkeys(HOURS, 1), content=pa.table(rows))
    publish(made, PAGES, "event_date", {DAY: 3}, inputs={ENRICHED: read})
    expiry.leave(made, ENRICHED, "event_hour", HOURS[:1], run=asdict(RUN))
    return made


def planner(lake: Lake) -> Planner:
    return Planner(graph=GRAPH, look=Snapshot(Path(lake.root) / "landing", EventLog(lake)))


@pytest.mark.parametrize("named", [None, HOURS], ids=["all of it", "some partitions"])
def test_what_has_expired_is_not_computed_again_and_neither_is_what_was_computed_from_it(
    lake: Lake, named: Sequence[str] | None
) -> None:
    assert EventLog(lake).take_back(ENRICHED, partitions=named) == HOURS[1:]
    assert EventLog(lake).publications(ENRICHED)[HOURS[0]].expired == 1
    assert HOURS[0] not in planner(lake).outstanding().wanted().get(ENRICHED, [])
    with pytest.raises(PartitionExpired, match="has expired"):
        planner(lake).resolve_keys(ENRICHED, HOURS[0])
    with pytest.raises(InputExpired, match=f"{DAY} stays as it is"):
        planner(lake).resolve_keys(PAGES, DAY)
