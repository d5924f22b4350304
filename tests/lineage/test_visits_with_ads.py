"""Visits and ads are joined within half an hour and counted by campaign, as simulated and as counted in plain Python.

Patterns: Dynamic Joiner, Local Aggregator, Distributed Aggregator.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter, defaultdict
from dataclasses import dataclass

import pytest
from typer.testing import CliRunner

from blogdata.cli.main import app
from blogdata.cli.outcome import Outcome
from blogdata.simulator import landing as simulator
from blogdata.simulator.faults import FaultRates
from blogdata.simulator.spec import SimulationSpec
from blogdata.simulator.truth import AdsTruth
from lineage import brute_force, expected
from lineage.conftest import Deploy
from lineage.deployment import Deployment

JOINED, CAMPAIGNS = "silver.visits_with_ads", "gold.campaign_stats"
AUDIENCE = "gold.campaign_audience_hourly"
# Faults that change no line: pairs are then those simulated, however late or often lines arrive.
FAULTS = FaultRates.none(duplicate=0.05, conflict=0.05, late=0.05, empty_hour=0.05, missing_hour=0.05)
SPEC = SimulationSpec(days=1, visits_per_day=4000, seed=6, faults=FAULTS, ads=True)
NEXT = "2026-01-06T00"


@dataclass(frozen=True)
class World:
    """A simulated day after its runs, with the independent counts."""

    deployment: Deployment
    truth: AdsTruth
    outcome: Outcome


@pytest.fixture(scope="module")
def world(deploy: Deploy, tmp_path_factory: pytest.TempPathFactory) -> World:
    source = tmp_path_factory.mktemp("source")
    truth = simulator.simulate(SPEC, source).ads
    assert truth is not None
    deployment = deploy("with-ads")
    for table in ("visits", "ads"):
        shutil.copytree(source / table, deployment.landing / table)
    return World(deployment, truth, deployment.run(for_=[CAMPAIGNS, AUDIENCE]))


def assert_recounted(deployment: Deployment, *datasets: str) -> None:
    rules, lines = dict(expected.RULES), brute_force.read(deployment.landing)
    for dataset in datasets:
        columns, rows = rules[dataset]
        assert Counter(deployment.rows(dataset, *columns)) == Counter(rows(deployment.landing, lines))
    assert deployment.problems() == []


@pytest.mark.campaign
def test_pairs_and_lonely_rows_are_the_simulated_ones(world: World) -> None:
    assert world.outcome.problems == []
    assert_recounted(world.deployment, JOINED, CAMPAIGNS, AUDIENCE)
    published = world.deployment.published(JOINED)
    for hour in world.truth.matches:
        found = {name: int(published[hour.hour].measures[name]) for name in ("events_alone", "displays_alone")}
        assert found == {"events_alone": hour.without_display, "displays_alone": hour.without_event}, hour
    totals = Counter(world.deployment.rows(JOINED, "side"))
    assert min(totals[side] for side in ("both", "event", "display")) > 15


@pytest.mark.campaign
def test_every_event_and_display_is_accounted_for(world: World) -> None:
    deployment = world.deployment
    for key, entry in deployment.published(JOINED).items():
        above = [deployment.published(name)[key].rows_out for name in ("silver.visits", "silver.ads")]
        assert entry.rows_in == sum(above)
        assert entry.rows_in == entry.rows_out + sum(entry.reasons.values())
    day = deployment.published(CAMPAIGNS)["2026-01-05"]
    assert int(day.measures["displays"]) == len(deployment.rows("silver.ads", "raw"))


@pytest.mark.campaign
def test_a_campaign_counts_an_event_once(world: World) -> None:
    rows = world.deployment.rows(CAMPAIGNS, "campaign", "events", "pairs")
    assert sum(pairs for _, _, pairs in rows) > sum(events for _, events, _ in rows)
    assert next(row for row in rows if row[0] == "unknown")[1:] == (0, 0)


@pytest.mark.campaign
def test_visitors_of_campaigns_are_near_their_number(world: World) -> None:
    lines = brute_force.read(world.deployment.landing)
    pairs = list(brute_force.pairs(lines, brute_force.read(world.deployment.landing, "ads")))
    env = {"BLOGDATA_HOME": str(world.deployment.settings.home)}

    def asked(of: str, first: str, end: str, also: str = "events > 0") -> dict[str, int]:
        query = (
            f"SELECT {of} AS of, hll_sketch_estimate(hll_union_agg(visitors)) AS visitors "
            f"FROM gold.campaign_audience_hourly WHERE event_hour >= '{first}' AND event_hour < '{end}' AND {also} "
            "GROUP BY 1"
        )
        said = CliRunner().invoke(app, ["sql", query, "--json"], env=env)
        assert said.exit_code == 0, said.output
        return {line["of"]: line["visitors"] for line in json.loads(said.output)}

    for first, end in (("2026-01-05T00", "2026-01-06T00"), ("2026-01-05T07", "2026-01-05T15")):
        exact: dict[str, set[str]] = defaultdict(set)
        for pair in pairs:
            if pair.event is not None and pair.display is not None and first <= pair.hour < end:
                exact[pair.display["campaign"] or "unknown"].add(pair.event["user_id"])
        found = asked("campaign", first, end)
        assert found.keys() == exact.keys()
        for name, visitors in exact.items():
            assert abs(found[name] - len(visitors)) <= 4 * 0.01625 * len(visitors) + 0.5
        one, other = sorted(exact)[:2]
        (together,) = asked("'both'", first, end, f"campaign IN ('{one}', '{other}')").values()
        assert together == pytest.approx(len(exact[one] | exact[other]), rel=4 * 0.01625, abs=0.5)


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


@pytest.mark.campaign
def test_a_replay_plans_the_hours_that_read_a_neighbour(world: World) -> None:
    plan = world.deployment.planner.plan_of_replay({"silver.ads": {"2026-01-05T10": "asked for"}}).wanted()
    assert plan[JOINED] == ["2026-01-05T10", "2026-01-05T11"]
    plan = world.deployment.planner.plan_of_replay({"silver.visits": {"2026-01-05T10": "asked for"}}).wanted()
    assert plan[JOINED] == ["2026-01-05T09", "2026-01-05T10"]
    assert plan[CAMPAIGNS] == ["2026-01-05"]


def test_visits_alone_wait_for_no_ads(deploy: Deploy) -> None:
    deployment = deploy("no-ads")
    deployment.land("2026-01-05T09", [b"{}"])
    assert {JOINED, CAMPAIGNS, AUDIENCE}.isdisjoint(deployment.outstanding().wanted())
