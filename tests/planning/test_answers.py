"""Local Sequencer: hours with unanswered questions are stale; before the first answers, all hours are."""

from __future__ import annotations

from pathlib import Path

from blogdata.evidence.events import EventLog
from blogdata.lake.lake import Lake
from blogdata.planning.plan import NEW, Plan, Planner
from blogdata.planning.snapshot import Snapshot
from published import bronze, publish, silver, whole
from quality.contracts import GRAPH

HOURS = ("2026-01-05T00", "2026-01-05T01", "2026-01-06T00")


def outstanding(lake: Lake) -> Plan:
    return Planner(graph=GRAPH, look=Snapshot(Path(lake.root) / "landing", EventLog(lake))).outstanding()


def test_an_upgrade_plans_all_hours_that_never_read_places(tmp_path: Path) -> None:
    """As in a first run. Regression: only the new table was planned, not its readers."""
    lake = Lake(root=str(tmp_path))
    visits = silver(lake, dict.fromkeys(HOURS, 1), read=bronze(lake, {hour: {hour: 1} for hour in HOURS}))
    publish(lake, "silver.visits_enriched", "event_hour", dict.fromkeys(HOURS, 1), inputs={"silver.visits": visits})
    planned = {run.task.main: run for run in outstanding(lake).runs}
    assert planned["silver.places"].reasons == {NEW: 1}
    assert planned["silver.visits_enriched"].keys == HOURS
    assert planned["silver.visits_enriched"].reasons == {"reads silver.places for the first time": len(HOURS)}
    assert planned["gold.page_stats"].keys == ("2026-01-05", "2026-01-06")


def test_hours_that_have_read_places_are_not_planned_for_more_of_them(tmp_path: Path) -> None:
    lake = Lake(root=str(tmp_path))
    visits = silver(lake, dict.fromkeys(HOURS, 1), read=bronze(lake, {hour: {hour: 1} for hour in HOURS}))
    publish(
        lake,
        "silver.visits_enriched",
        "event_hour",
        dict.fromkeys(HOURS, 1),
        inputs={
            "silver.visits": visits,
            "silver.places": whole(lake, "silver.places", inputs={"silver.visits": visits}),
        },
    )
    silver(lake, {HOURS[0]: 1}, read=0)
    planned = {run.task.main: run.keys for run in outstanding(lake).runs}
    assert "silver.places" in planned
    assert planned["silver.visits_enriched"] == HOURS[:1]
