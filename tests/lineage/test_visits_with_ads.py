"""Visits and ads are joined within half an hour and counted by campaign, as in plain Python.

Patterns: Dynamic Joiner, Local Aggregator, Distributed Aggregator.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from dataclasses import dataclass

import pytest

from blogdata.cli.output import Outcome
from blogdata.simulator import landing as simulator
from blogdata.simulator.faults import FaultRates
from blogdata.simulator.spec import SimulationSpec
from lineage import brute_force, expected
from lineage.conftest import Deploy
from lineage.deployment import Deployment

JOINED, CAMPAIGNS = "silver.visits_with_ads", "gold.campaign_stats"
AUDIENCE = "gold.campaign_audience_hourly"
FAULTS = FaultRates.none(duplicate=0.05, conflict=0.05, late=0.05, empty_hour=0.05, missing_hour=0.05)
SPEC = SimulationSpec(days=1, visits_per_day=4000, seed=6, faults=FAULTS, ads=True)
NEXT = "2026-01-06T00"


@dataclass(frozen=True)
class World:
    """A simulated day after its runs."""

    deployment: Deployment
    outcome: Outcome


@pytest.fixture(scope="module")
def world(deploy: Deploy, tmp_path_factory: pytest.TempPathFactory) -> World:
    source = tmp_path_factory.mktemp("source")
    simulator.simulate(SPEC, source)
    deployment = deploy("with-ads")
    for table in ("visits", "ads"):
        shutil.copytree(source / table, deployment.landing / table)
    return World(deployment, deployment.run(for_=[CAMPAIGNS, AUDIENCE]))


def assert_recounted(deployment: Deployment, *datasets: str) -> None:
    rules = expected.of(deployment.landing, *datasets)
    for dataset, rule in rules.items():
        assert expected.found(deployment, dataset) == rule.rows
    assert deployment.problems() == []


@pytest.mark.campaign
def test_pairs_and_lonely_rows_are_the_recounted_ones(world: World) -> None:
    assert world.outcome.problems == []
    assert_recounted(world.deployment, JOINED, CAMPAIGNS, AUDIENCE)
    totals = Counter(world.deployment.rows(JOINED, "side"))
    assert min(totals[side] for side in ("both", "event", "display")) > 15


@pytest.mark.campaign
def test_late_rows_recompute_exactly_the_hours_in_reach(world: World) -> None:
    deployment = world.deployment
    before = {key: entry.version for key, entry in deployment.published(JOINED).items()}
    event = json.loads(next(iter(brute_force.read(deployment.landing).winners.values())).raw)
    event |= {"visit_id": "late", "event_time": "2026-01-05T17:19:00Z", "page": "/late"}
    event["context"]["ad_id"] = "ad-0001"
    display = {"ad_id": "ad-0001", "page": "/", "visit_id": "late", "campaign": "late"}
    times = (f"2026-01-05T{time}:00Z" for time in ("16:50", "10:05"))
    lines = [json.dumps({**display, "display_time": time}).encode() for time in times]
    deployment.land(NEXT, [json.dumps(event).encode()])
    deployment.land(NEXT, lines, name="ads.json", table="ads")
    assert deployment.run(for_=[JOINED]).problems == []
    changed = {key for key, entry in deployment.published(JOINED).items() if entry.version != before.get(key)}
    # Each hour with a late row, the one after a late display, and the one before a late event.
    assert changed == {*(f"2026-01-05T{hour}" for hour in (10, 11, 16, 17, 23)), NEXT}
    mine = [row[1:] for row in deployment.rows(JOINED, "visit_id", "side", "seconds_between") if row[0] == "late"]
    assert sorted(mine, key=repr) == [("both", 29 * 60.0), ("display", None)]
    assert_recounted(deployment, JOINED)
