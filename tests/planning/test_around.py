"""A partition is stale if a neighbour changes whose rows may be joined with its own; without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from blogdata.lake.commit import Entry
from blogdata.publish.contract import Edge, Wanted
from quality.contracts import CONTRACTS

JOINED = CONTRACTS["silver.visits_with_ads"]
ADS, VISITS = (Edge(above=name, below=JOINED) for name in ("silver.ads", "silver.visits"))
REACHES = {read.dataset: read.reach for read in JOINED.reads}
DAY = "2026-01-05T"


def entry(dataset: str, hour: str, version: int, **inputs: int) -> Entry:
    named = {name.replace("_", ".", 1): seen for name, seen in inputs.items()}
    return Entry(dataset=dataset, partition=hour, version=version, rows_in=1, rows_out=1, reasons={}, inputs=named)


@dataclass
class Look:
    """The publications, by dataset and hour."""

    tables: dict[str, dict[str, Entry]] = field(default_factory=dict)

    def publish(self, dataset: str, version: int, *hours: str, **inputs: int) -> None:
        found = self.tables.setdefault(dataset, {})
        found.update({DAY + hour: entry(dataset, DAY + hour, version, **inputs) for hour in hours})

    def published(self, dataset: str) -> Mapping[str, Entry]:
        return self.tables.get(dataset, {})


def behind(look: Any, edge: Edge) -> list[str]:
    return sorted(key.removeprefix(DAY) for key in REACHES[edge.above].behind(look, edge))


def reach(look: Any, edge: Edge, wanted: Wanted) -> list[str]:
    return sorted(REACHES[edge.above].reached(look, edge, wanted, {}))


@pytest.fixture
def look() -> Look:
    found = Look()
    found.publish("silver.ads", 1, "10", "11", "12")
    found.publish("silver.visits", 1, "09", "10", "11", "12")
    return found


def test_late_rows_outdate_the_neighbour_they_may_reach(look: Look) -> None:
    look.publish(JOINED.dataset, 1, "10", "11", "12", silver_ads=1, silver_visits=1)
    assert behind(look, ADS) == behind(look, VISITS) == []
    look.publish("silver.ads", 2, "11")
    look.publish("silver.visits", 2, "12")
    assert behind(look, ADS) == ["11", "12"]
    assert behind(look, VISITS) == ["11", "12"]
    # The hour after the newest joined one is joined on its own, and makes the one before stale.
    look.publish("silver.visits", 3, "13")
    assert behind(look, VISITS) == ["11", "12", "13"]


def test_a_replay_reaches_published_neighbours_only(look: Look) -> None:
    look.publish(JOINED.dataset, 1, "10", "11", silver_ads=1, silver_visits=1)
    wanted = {"silver.ads": {f"{DAY}11": ""}, "silver.visits": {f"{DAY}11": ""}}
    reached = {edge.above: reach(look, edge, wanted) for edge in (ADS, VISITS)}
    assert reached == {"silver.ads": [f"{DAY}11"], "silver.visits": [f"{DAY}10", f"{DAY}11"]}
    early = {"silver.visits": {f"{DAY}09": ""}}
    assert reach(look, VISITS, early) == []
