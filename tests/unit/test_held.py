"""Only hours that received mostly dead letters wait for a person."""

from __future__ import annotations

from pathlib import Path

from blogdata.contract.partitions import Grain
from blogdata.planning.plan import Plan
from blogdata.planning.snapshot import landed
from blogdata.table.lake import Lake
from published import bronze, deployment, land, planner, silver, stale

VISITS = "silver.visits"
H = [f"2026-01-05T{hour:02d}" for hour in range(24)]


def waiting(lake: Lake) -> list[str]:
    found = sorted(planner(lake).held().get("silver.visits", {}))
    assert set(stale(lake, VISITS)).isdisjoint(found), "waiting hours are not planned"
    return found


def test_only_hours_touched_by_bad_arrivals_wait(lake: Lake) -> None:
    bronze(lake, {H[1]: {H[1]: 10, H[0]: 2}, H[2]: {H[2]: 10}}, dead={H[1]: 100})
    assert waiting(lake) == [H[0], H[1]]
    assert stale(lake, VISITS) == [H[2]]
    fault = planner(lake).held()["silver.visits"][H[0]]
    assert f"bronze.dead_letters {H[1]}" in str(fault)
    assert "100 of 112 rows (89.3%) are rejected, 75.0% is accepted" in str(fault)
    assert "blogdata run --accept dead_letters" in str(fault)
    outstanding = planner(lake).outstanding()
    assert [run.keys for run in outstanding.runs if "silver.visits" in run.datasets] == [(H[2],)]
    assert [str(error) for error in outstanding.refused] == [str(fault)]


def test_published_hours_touched_by_bad_arrivals_wait(lake: Lake) -> None:
    version = bronze(lake, {H[0]: {H[0]: 10}})
    silver(lake, {H[0]: 10}, read=version)
    bronze(lake, {H[1]: {H[1]: 5, H[0]: 1}}, dead={H[1]: 200})
    # A good arrival later does not release it.
    bronze(lake, {H[2]: {H[2]: 5, H[1]: 1}})
    assert waiting(lake) == [H[0], H[1]]
    assert stale(lake, VISITS) == [H[2]]


def test_accepted_hours_wait_again_only_when_worse(lake: Lake) -> None:
    version = bronze(lake, {H[1]: {H[1]: 10}}, dead={H[1]: 100})
    silver(lake, {H[1]: 10}, read=version)
    assert waiting(lake) == []
    bronze(lake, {H[1]: {H[1]: 11}}, dead={H[1]: 100})
    assert waiting(lake) == [], "a correction arrived, or the hour was published again"
    bronze(lake, {H[1]: {H[1]: 11}}, dead={H[1]: 101})
    assert waiting(lake) == [H[1]]


def test_quiet_hours_are_judged_with_quiet_predecessors(lake: Lake) -> None:
    bronze(lake, {H[0]: {}, H[1]: {}}, dead={H[0]: 40, H[1]: 40})
    assert waiting(lake) == [], "eighty lines are too few to judge a share"
    bronze(lake, {H[2]: {}, H[3]: {H[3]: 40}}, dead={H[2]: 40})
    assert waiting(lake) == [H[2]], "an hour with usable lines does not wait for earlier ones"


def test_a_held_hour_landed_again_awaits_its_run(tmp_path: Path) -> None:
    deployed = deployment(tmp_path / "home")
    land(deployed, "visits", H[1], {"visits.json": "{"})
    (before,) = landed(deployed.landing_path, "visits", Grain.HOUR)
    bronze(deployed.lake, {H[1]: {H[1]: 10, H[0]: 2}}, dead={H[1]: 100}, landed={H[1]: before.fingerprint})

    def outstanding() -> Plan:
        return planner(deployed.lake).outstanding()

    (fault,) = outstanding().refused
    assert f"FROM bronze.dead_letters WHERE arrival_hour = '{H[1]}' GROUP BY" in str(fault)
    folder = land(deployed, "visits", H[1], {"visits.json": "{}"}, flag=False)
    assert outstanding().refused == ()
    planned = {name: run.keys for run in outstanding().runs for name in run.datasets}
    assert planned["bronze.visits"] == (H[1],)
    assert planned["silver.visits"] == (H[0], H[1])
    alone = planner(deployed.lake).held()[VISITS]
    assert sorted(alone) == [H[0], H[1]], "silver.visits alone would still have the old rows"
    (folder / "_SUCCESS").unlink()
    assert outstanding().refused != (), "half a delivery does not count"
