"""Late rows make the event hours stale that they touch; only hours of mostly dead letters wait for a person."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from blogdata.contract.partitions import Grain
from blogdata.ledger.events import EventLog
from blogdata.patterns.error_management.late_data_detector import Strategy
from blogdata.planning.plan import Plan
from blogdata.planning.snapshot import landed
from blogdata.table.lake import Lake
from published import bronze, deployment, enriched, land, planner, publish, silver, stale
from quality.contracts import GRAPH
from quality.contracts.visits import WATERMARK

VISITS = "silver.visits"
H = [f"2026-01-05T{hour:02d}" for hour in range(24)]


def lacking(lake: Lake, dataset: str = "silver.visits") -> dict[str, str]:
    return planner(lake).stale(GRAPH.task_of(dataset))


def hours(lake: Lake, dataset: str = "silver.visits") -> list[str]:
    return list(lacking(lake, dataset))


@pytest.fixture
def settled(lake: Lake) -> Lake:
    read = bronze(lake, {f"2026-01-05T0{hour}": {f"2026-01-05T0{hour}": 10} for hour in (1, 2, 3)})
    silver(lake, {f"2026-01-05T0{hour}": 10 for hour in (1, 2, 3)}, read=read)
    return lake


def test_outdated_hours_rerun_until_computed_from_newer_rows(settled: Lake) -> None:
    before = settled.version("bronze.visits")
    assert before is not None
    read = bronze(settled, {"2026-01-05T04": {"2026-01-05T02": 1}})
    late = {"2026-01-05T02": 11, "2026-01-05T04": 0}
    by = silver(settled, late, read=read, makes_stale={"2026-01-05T02": ["2026-01-05T03"]})
    assert lacking(settled) == {"2026-01-05T03": f"outdated by version {by}"}
    # Published later, and computed from the rows that had arrived before.
    silver(settled, {"2026-01-05T03": 10}, read=before)
    assert hours(settled) == ["2026-01-05T03"]
    silver(settled, {"2026-01-05T03": 10}, read=read)
    assert not hours(settled)


def test_a_moved_watermark_makes_its_hour_stale(lake: Lake) -> None:
    first, second = "2026-01-05T01", "2026-01-05T02"
    arrived(lake, first, until="2026-01-05T01:50:00Z")
    read = arrived(lake, second, until="2026-01-05T02:50:00Z")
    judged(lake, {first: "no watermark", second: "watermark 2026-01-05T01:35:00+00:00"}, read=read)
    assert hours(lake, "silver.late_visits") == []
    read = arrived(lake, first, until="2026-01-05T01:58:00Z")
    judged(lake, {first: "no watermark"}, read=read)
    assert lacking(lake, "silver.late_visits") == {second: "watermark 2026-01-05T01:43:00+00:00"}
    judged(lake, {second: "watermark 2026-01-05T01:43:00+00:00"}, read=read)
    assert hours(lake, "silver.late_visits") == []


@pytest.mark.parametrize(("strategy", "mark"), [(Strategy.MAX, "01:43"), (Strategy.MIN, "01:05")])
def test_visits_and_access_logs_make_one_watermark_as_declared(lake: Lake, strategy: Strategy, mark: str) -> None:
    """Figure 3-4 with two sources: logs that are delivered late hold the watermark back under MIN."""
    first, second = "2026-01-05T01", "2026-01-05T02"
    arrived(lake, first, until="2026-01-05T01:58:00Z", logged="2026-01-05T01:20:00Z")
    arrived(lake, second, until="2026-01-05T02:50:00Z", logged=None)
    declared = replace(WATERMARK, combined=strategy)
    found = declared.marks(EventLog(lake).publications("bronze.visits"), [first, second])
    assert found == {first: "no watermark", second: f"watermark 2026-01-05T{mark}:00+00:00"}


def arrived(lake: Lake, hour: str, *, until: str, **more: str | None) -> int:
    """Publish an hour of bronze.visits with the given times of its latest event, and line of an access log."""
    measures = {"max_event_time": until, **({"max_logged_time": more["logged"]} if more else {})}
    return publish(lake, "bronze.visits", "arrival_hour", {hour: 1}, measures={hour: measures})


def judged(lake: Lake, marks: dict[str, str], *, read: int) -> None:
    rows = dict.fromkeys(marks, 1)
    publish(lake, "silver.late_visits", "arrival_hour", rows, landed=marks, inputs={"bronze.visits": read})


def waiting(lake: Lake) -> list[str]:
    found = sorted(planner(lake).held().get("silver.visits", {}))
    assert set(stale(lake, VISITS)).isdisjoint(found), "waiting hours are not planned"
    return found


def test_any_hour_of_a_day_makes_it_stale(lake: Lake) -> None:
    enriched(lake, ["2026-01-05T01", "2026-01-05T02"], read=0)
    read = enriched(lake, ["2026-01-05T01"], read=0)
    publish(lake, "gold.page_stats", "event_date", {"2026-01-05": 1}, inputs={"silver.visits_enriched": read - 1})
    assert hours(lake, "gold.page_stats") == ["2026-01-05"]
    publish(lake, "gold.page_stats", "event_date", {"2026-01-05": 1}, inputs={"silver.visits_enriched": read})
    assert hours(lake, "gold.page_stats") == []


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
