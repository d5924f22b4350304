"""Displayed ads land by hour of arrival; each is kept once, in its hour of display, or is a dead letter."""

from __future__ import annotations

import shutil
from dataclasses import dataclass

import pytest

from blogdata.cli.output import Outcome
from blogdata.simulator import landing as simulator
from blogdata.simulator.faults import LINE_FAULTS, FaultRates
from blogdata.simulator.spec import SimulationSpec
from blogdata.simulator.truth import AdsTruth
from lineage import expected
from lineage.conftest import Deploy
from lineage.deployment import Deployment
from quality.contracts import CONTRACTS

# Huge lines have five megabytes each, so two hours have one; every other fault has a rate of four per cent.
RATES = {**dict.fromkeys(LINE_FAULTS, 0.04), "huge_line": 0.003, "empty_hour": 0.05, "missing_hour": 0.05}
SPEC = SimulationSpec(days=1, visits_per_day=7000, seed=5, faults=FaultRates(**RATES), ads=True)
DATASETS = ("bronze.ads", "bronze.ad_dead_letters", "silver.ads", "silver.ad_conflicts")
# The displays without the visit events.
JOINED = ("silver.visits_with_ads", "gold.campaign_stats", "gold.campaign_audience_hourly")


@dataclass(frozen=True)
class World:
    """The displays of a simulated day after its runs, with the independent counts."""

    deployment: Deployment
    truth: AdsTruth
    outcome: Outcome


@pytest.fixture(scope="module")
def world(deploy: Deploy, tmp_path_factory: pytest.TempPathFactory) -> World:
    source = tmp_path_factory.mktemp("source")
    truth = simulator.simulate(SPEC, source).ads
    assert truth is not None
    deployment = deploy("ads")
    # Without the visits, which the displays do not depend on.
    shutil.copytree(source / "ads", deployment.landing / "ads")
    return World(deployment, truth, deployment.run(for_=DATASETS))


def test_every_line_is_accounted_for(world: World) -> None:
    assert world.outcome.problems == []
    assert world.deployment.problems() == []
    assert world.deployment.undeclared() == set()
    published = {name for name in CONTRACTS if world.deployment.published(name)}
    assert published == {*DATASETS}
    assert set(world.deployment.outstanding().wanted()) == {*JOINED, "gold.daily_report"}


def test_counts_by_hour_of_arrival_are_the_truth(world: World) -> None:
    published = world.deployment.published("bronze.ads")
    assert set(published) == {hour.arrival_hour for hour in world.truth.hours if hour.state != "missing"}
    for hour in world.truth.hours:
        if hour.state == "missing":
            continue
        entry = published[hour.arrival_hour]
        measures = {name: int(entry.measures[name] or 0) for name in ("bytes", "dead", "displays")}
        assert (entry.rows_out, measures) == (
            hour.lines,
            {"bytes": hour.bytes, "dead": hour.dead, "displays": hour.valid},
        )
        displays = {of: count for (of,), count in entry.breakdowns["display_hours"].items() if of is not None}
        assert displays == dict(hour.by_event_hour)
        assert {why: count for (why,), count in entry.breakdowns["reasons"].items()} == dict(hour.reasons)


def test_every_display_is_where_a_recount_in_plain_python_has_it(world: World) -> None:
    for dataset, rule in expected.of(world.deployment.landing, *DATASETS).items():
        assert expected.found(world.deployment, dataset) == rule.rows, dataset
    published = world.deployment.published("silver.ads")
    for hour in world.truth.display_hours:
        entry = published[hour.event_hour]
        assert (entry.rows_in, entry.rows_out, int(entry.measures["conflicts"] or 0)) == (
            hour.valid,
            hour.unique,
            hour.conflicts,
        )
