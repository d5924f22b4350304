"""A partition is stale if a neighbour changes whose rows may be joined with its own; without Spark."""

from __future__ import annotations

from typing import Any

import pytest

from blogdata.publish.contract import Edge, Wanted
from planning.looks import Look
from quality.contracts import CONTRACTS

JOINED = CONTRACTS["silver.visits_with_ads"]
ADS, VISITS = (Edge(above=name, below=JOINED) for name in ("silver.ads", "silver.visits"))
REACHES = {read.dataset: read.reach for read in JOINED.reads}
TEN, ELEVEN, TWELVE = HOURS = tuple(f"2026-01-05T{hour}" for hour in (10, 11, 12))
READ = {"silver.ads": 1, "silver.visits": 1}


def behind(look: Any, edge: Edge) -> list[str]:
    return sorted(REACHES[edge.above].behind(look, edge))


def reach(look: Any, edge: Edge, wanted: Wanted) -> list[str]:
    return sorted(REACHES[edge.above].reached(look, edge, wanted, {}))


@pytest.fixture
def look() -> Look:
    found = Look()
    found.publish("silver.ads", 1, *HOURS)
    found.publish("silver.visits", 1, "2026-01-05T09", *HOURS)
    return found


def test_late_rows_outdate_the_neighbour_they_may_reach(look: Look) -> None:
    look.publish(JOINED.dataset, 1, *HOURS, inputs=READ)
    assert behind(look, ADS) == behind(look, VISITS) == []
    look.publish("silver.ads", 2, ELEVEN)
    look.publish("silver.visits", 2, TWELVE)
    assert behind(look, ADS) == behind(look, VISITS) == [ELEVEN, TWELVE]
    # The hour after the newest joined one is joined on its own, and makes the one before stale.
    look.publish("silver.visits", 3, "2026-01-05T13")
    assert behind(look, VISITS) == [ELEVEN, TWELVE, "2026-01-05T13"]


def test_a_replay_reaches_published_neighbours_only(look: Look) -> None:
    look.publish(JOINED.dataset, 1, TEN, ELEVEN, inputs=READ)
    wanted = {"silver.ads": {ELEVEN: ""}, "silver.visits": {ELEVEN: ""}}
    reached = {edge.above: reach(look, edge, wanted) for edge in (ADS, VISITS)}
    assert reached == {"silver.ads": [ELEVEN], "silver.visits": [TEN, ELEVEN]}
    assert reach(look, VISITS, {"silver.visits": {"2026-01-05T09": ""}}) == []
