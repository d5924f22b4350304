"""Displayed ads land by hour of arrival; each is kept once, in its hour of display, or is a dead letter."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from dataclasses import dataclass

import pytest

from blogdata.cli.outcome import Outcome
from blogdata.simulator import landing as simulator
from blogdata.simulator.faults import LINE_FAULTS, FaultRates
from blogdata.simulator.spec import SimulationSpec
from blogdata.simulator.truth import AdsTruth
from lineage import brute_force
from lineage.brute_force import Lines
from lineage.conftest import Deploy
from lineage.deployment import Deployment
from quality.contracts import CONTRACTS

# Huge lines have five megabytes each, so two hours have one; every other fault has a rate of four per cent.
RATES = {**dict.fromkeys(LINE_FAULTS, 0.04), "huge_line": 0.003, "empty_hour": 0.05, "missing_hour": 0.05}
SPEC = SimulationSpec(days=1, visits_per_day=7000, seed=5, faults=FaultRates(**RATES), ads=True)
DATASETS = ("bronze.ads", "bronze.ad_dead_letters", "silver.ads", "silver.ad_conflicts")
# The displays without the visit events.
JOINED = ("silver.visits_with_ads", "gold.campaign_stats", "gold.campaign_audience_hourly")
POSITION = ("source_file", "source_offset")


@dataclass(frozen=True)
class World:
    """The displays of a simulated day after its runs, with the independent counts."""

    deployment: Deployment
    truth: AdsTruth
    lines: Lines
    outcome: Outcome


@pytest.fixture(scope="module")
def world(deploy: Deploy, tmp_path_factory: pytest.TempPathFactory) -> World:
    source = tmp_path_factory.mktemp("source")
    truth = simulator.simulate(SPEC, source).ads
    assert truth is not None
    deployment = deploy("ads")
    # Without the visits, which the displays do not depend on.
    shutil.copytree(source / "ads", deployment.landing / "ads")
    return World(deployment, truth, brute_force.read(deployment.landing, "ads"), deployment.run(for_=DATASETS))


def test_every_line_is_accounted_for(world: World) -> None:
    assert world.outcome.problems == []
    assert world.deployment.problems() == []
    assert world.deployment.undeclared() == set()
    published = {name for name in CONTRACTS if world.deployment.published(name)}
    assert published == {*DATASETS}
    assert set(world.deployment.outstanding().wanted()) == {*JOINED, "gold.daily_report"}
    rows = world.deployment.rows("bronze.ads", "arrival_hour", *POSITION, "raw")
    assert sorted(rows) == sorted((line.arrival_hour, *line.place, line.raw) for line in world.lines.all)


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


def test_dead_letters_keep_all_their_reasons(world: World) -> None:
    rows = world.deployment.rows("bronze.ad_dead_letters", *POSITION, "raw", "reasons")
    assert Counter((*row[:3], tuple(sorted(row[3]))) for row in rows) == Counter(
        (*line.place, line.raw, tuple(sorted(line.verdict.reasons))) for line in world.lines.dead
    )


def test_the_first_display_of_each_identity_is_kept(world: World) -> None:
    columns = ("visit_id", "ad_id", "display_time", "display_hour", "page", "campaign")
    rows = world.deployment.rows("silver.ads", *columns, *POSITION, "raw", "occurrences", "conflicts")
    expected = []
    for identity, line in world.lines.winners.items():
        display, losers = json.loads(line.raw), world.lines.losers.get(identity, [])
        assert line.verdict.time is not None
        expected.append(
            (
                display["visit_id"],
                display["ad_id"],
                line.verdict.time,
                line.event_hour,
                display["page"],
                display["campaign"],
                *line.place,
                line.raw,
                1 + len(losers),
                sum(loser.raw != line.raw for loser in losers),
            )
        )
    assert sorted(rows) == sorted(expected)
    lost = world.deployment.rows("silver.ad_conflicts", *POSITION, "raw")
    assert sorted(lost) == sorted((*line.place, line.raw) for line in world.lines.conflicts)
    published = world.deployment.published("silver.ads")
    for hour in world.truth.display_hours:
        entry = published[hour.event_hour]
        assert (entry.rows_in, entry.rows_out, int(entry.measures["conflicts"] or 0)) == (
            hour.valid,
            hour.unique,
            hour.conflicts,
        )
