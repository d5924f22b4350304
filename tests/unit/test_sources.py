"""A dataset is computed once each of its required inputs has been delivered; without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import published
from blogdata.planning.graph import LANDING
from blogdata.planning.plan import ASKED
from blogdata.planning.snapshot import awaited, landed_tables
from blogdata.runs.lake_resource import LakeResource
from declared import OF_COMPLETE_WEEKS
from quality.contracts import CONTRACTS, GRAPH

HOUR, DAY = "2026-01-05T00", "2026-01-05"
KEYS = {"visits": HOUR, "ads": HOUR, "users": DAY, "devices": DAY}


@pytest.fixture
def home(tmp_path: Path) -> LakeResource:
    return published.deployment(tmp_path)


def land(home: LakeResource, *tables: str) -> None:
    for table in tables:
        published.land(home, table, KEYS[table], {"a.json": "{}"})


@settings(deadline=None)
@given(st.sets(st.sampled_from(sorted(KEYS))))
def test_waiting_datasets_name_their_missing_inputs(landed: set[str]) -> None:
    there = {LANDING + table for table in landed}
    computed = GRAPH.with_input(there)
    for name in CONTRACTS:
        above = {name, *GRAPH.upstream([name])}
        missing = {edge.above for of in above for edge, _ in GRAPH.edges(GRAPH.task_of(of))} - there - CONTRACTS.keys()
        assert missing or name in computed
        assert name in GRAPH.with_input(there | missing)


def test_a_replay_plans_nothing_that_has_no_source(home: LakeResource) -> None:
    land(home, "visits")
    published.bronze(home.lake, {HOUR: {HOUR: 1}})
    plan = published.planner(home.lake).plan_of_replay({"bronze.visits": {HOUR: ASKED}})
    # An unpublished hour has no access log lines yet whose requests a day could count, and no week has ended.
    planned = GRAPH.with_input([f"{LANDING}visits"]) - {"gold.requests_daily"} - OF_COMPLETE_WEEKS
    assert {name for run in plan.runs for name in run.datasets} == planned


def test_a_person_is_told_what_has_not_landed(home: LakeResource) -> None:
    land(home, "visits")
    look = published.planner(home.lake).look
    assert landed_tables(GRAPH, look) == {f"{LANDING}visits"}
    assert awaited(GRAPH, look, "silver.visits_enriched") is None
    fault = awaited(GRAPH, look, "gold.campaign_stats")
    assert fault is not None
    assert fault.what == "nothing can be computed of gold.campaign_stats yet: nothing has landed of landing.ads"
    # Published hours count, even if their landed files are gone.
    published.publish(home.lake, "bronze.ads", "arrival_hour", {HOUR: 1})
    assert awaited(GRAPH, published.planner(home.lake).look, "gold.campaign_stats") is None
