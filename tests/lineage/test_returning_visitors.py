"""Visitors who come back in a later week are counted from the hours' sketches; a late row computes its week again.

Pattern: Dataset Materializer.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from blogdata.cli.outcome import Outcome
from blogdata.patterns.observability import dataset_tracker
from blogdata.planning import detectors
from blogdata.planning.observed import Observed
from blogdata.planning.snapshot import Snapshot
from lineage.conftest import Deploy
from lineage.deployment import Deployment, event
from quality.contracts import GRAPH
from resources.zone import zone_of

DATASET = "gold.returning_visitors"
WEEKS = ("2026-01-05", "2026-01-12", "2026-01-19")
SHOWN = ("cohort_week", "event_week", "cohort_visitors", "week_visitors", "returning", "events")


def come(made: Deployment, hour: str, *visitors: str, arrives: str = "", name: str = "visits.json") -> None:
    made.land(arrives or hour, [event("", f"/{who}", event_time=f"{hour}:05:00Z") for who in visitors], name=name)


def run(made: Deployment) -> Outcome:
    """Compute it and its inputs; the rest of gold has its own tests."""
    return made.run(for_=[DATASET])


@pytest.fixture(scope="module")
def deployment(deploy: Deploy) -> Deployment:
    made = deploy("returning")
    come(made, f"{WEEKS[0]}T10", "ann", "bob", "eve")
    come(made, f"{WEEKS[1]}T10", "bob", "eve", "joe", "kim")
    come(made, f"{WEEKS[1]}T11", "bob")
    come(made, f"{WEEKS[2]}T00", "ann")
    assert run(made).problems == []
    return made


def test_weeks_that_have_ended_are_paired_with_later_ones(deployment: Deployment) -> None:
    assert sorted(deployment.rows(DATASET, *SHOWN)) == [
        (WEEKS[0], WEEKS[0], 3, 3, 3, 3),
        (WEEKS[0], WEEKS[1], 3, 4, 2, None),
        (WEEKS[1], WEEKS[1], 4, 4, 4, 5),
    ]
    assert deployment.problems() == []


def test_a_late_row_makes_the_table_stale_until_its_week_is_computed(deployment: Deployment) -> None:
    """The page says how the view differs until then, and that the check `lag` and the plan show it."""
    page = Path(__file__).parents[2] / "docs" / "how-to" / "count-visitors.md"
    (query,) = [line for line in page.read_text(encoding="utf-8").splitlines() if "EXCEPT" in line]
    come(deployment, f"{WEEKS[0]}T20", "kim", arrives=f"{WEEKS[2]}T01")
    assert deployment.run(for_=["gold.audience_hourly"]).problems == []
    assert {row[:2] for row in deployment.pasted(query)} == {(WEEKS[0], week) for week in WEEKS[:2]}
    look = Snapshot(zone_of(deployment.settings), deployment.events)
    seen = Observed(graph=GRAPH, look=look, now=datetime.now(timezone.utc) + timedelta(hours=20))
    reading = detectors.lag(seen, GRAPH.contracts[DATASET])
    assert reading.stands
    assert "1 versions of gold.audience_hourly are not read" in reading.what
    assert DATASET in {name for one in deployment.outstanding().runs for name in one.datasets}
    assert run(deployment).problems == []
    newest = next(dataset_tracker.publications(deployment.lake, DATASET)).commit
    assert newest.info["refreshed"].startswith(f"{WEEKS[0]}, since 1 partitions of gold.audience_hourly changed")
    counted = {row[:2]: row[2:] for row in deployment.rows(DATASET, *SHOWN)}
    assert counted[WEEKS[0], WEEKS[1]] == (4, 4, 3, None)
    assert deployment.pasted(query) == []
    assert deployment.problems() == []
