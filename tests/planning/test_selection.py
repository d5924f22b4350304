"""A selection by time or dataset contains the overlapping partitions, and lists those that wait."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pytest

from blogdata.evidence.events import EventLog
from blogdata.lake.lake import Lake
from blogdata.planning.plan import Planner
from blogdata.planning.selection import Selection
from blogdata.planning.snapshot import Snapshot
from blogdata.planning.window import Window
from published import bronze
from quality.contracts import GRAPH

H = [f"2026-01-05T{hour:02d}" for hour in range(24)]


@pytest.fixture
def planner(tmp_path: Path) -> Planner:
    """Hours 0 and 1 wait because of the dead letters of hour 1; hour 2 is good."""
    lake = Lake(root=str(tmp_path))
    bronze(lake, {H[1]: {H[1]: 10, H[0]: 2}, H[2]: {H[2]: 10}}, dead={H[1]: 100})
    return Planner(graph=GRAPH, look=Snapshot(tmp_path / "landing", EventLog(lake)))


def hours(first: int, end: int) -> Window:
    start, stop = (datetime(2026, 1, 5, hour, tzinfo=timezone.utc) for hour in (first, end))
    return Window(start=start, end=stop)


def test_held_hours_are_grouped_by_their_reason(planner: Planner) -> None:
    (waiting,) = Selection().waiting(planner)
    assert (waiting.dataset, waiting.main, waiting.span) == ("silver.visits", "silver.visits", f"{H[0]} … {H[1]} (2)")
    assert waiting.why == str(planner.held()["silver.visits"][H[0]])
    assert str(waiting) == f"silver.visits {H[0]} … {H[1]} (2) waits for a person: {waiting.why}"


def test_only_selected_hours_are_reported_as_waiting(planner: Planner) -> None:
    (waiting,) = Selection(window=hours(0, 1)).waiting(planner)
    assert waiting.span == H[0], "hour 1 begins where the window ends"
    assert [one.span for one in Selection(select=["silver.visit_conflicts"]).waiting(planner)], "its main dataset waits"
    assert not list(Selection(window=hours(2, 3)).waiting(planner))
    assert not list(Selection(select=["gold.page_stats"]).waiting(planner))


def test_empty_selections_are_recognised(planner: Planner) -> None:
    assert Selection().is_anything(planner)
    assert Selection(window=hours(2, 3), select=["bronze.visits"]).is_anything(planner)
    assert not Selection(window=hours(5, 6), select=["bronze.visits"]).is_anything(planner)
    assert not Selection(select=["bronze.users"]).is_anything(planner)


def test_upstream_is_all_that_a_dataset_needs() -> None:
    assert GRAPH.upstream(["bronze.visits"]) == set()
    assert GRAPH.upstream(["bronze.dead_letters"]) == {"bronze.visits"}, "it appears with its main dataset"
    assert GRAPH.upstream(["silver.visits_with_ads"]) == {"bronze.visits", "silver.visits", "bronze.ads", "silver.ads"}
    assert GRAPH.upstream(["silver.visits_with_ads", "silver.ads"]) == {"bronze.visits", "silver.visits", "bronze.ads"}
