"""A table that repeats what another one says is stale while it shows something else; no Spark.

Pattern: Denormalizer (:mod:`blogdata.planning.reaches`).
"""

from __future__ import annotations

from typing import Any

from blogdata.lake.commit import WHOLE_TABLE
from blogdata.planning.reaches import Shown
from blogdata.publish.contract import Edge
from planning.looks import Look
from quality.contracts import CONTRACTS
from quality.contracts.visits_model import DEVICES

WEEK, NEXT_WEEK = "2026-01-05", "2026-01-12"
BIG = CONTRACTS["gold.visits_obt"]
(NAMES,) = [read.reach for read in BIG.reads if read.dataset == DEVICES]
EDGE = Edge(above=DEVICES, below=BIG)
PHONE, TABLET = ("phone", "1", "Phone"), ("tablet", "2", "Tablet")


def behind(*said: tuple[str, ...]) -> set[str]:
    """Name the weeks that are stale when the devices are called so: one has the phone, the other one has both."""
    look: Any = Look()
    for week, names in ((WEEK, (PHONE,)), (NEXT_WEEK, (PHONE, TABLET))):
        look.publish(BIG.dataset, 1, week, breakdowns={"names": dict.fromkeys(names, 1)})
    if said:
        look.publish(DEVICES, 1, WHOLE_TABLE, breakdowns={"names": dict.fromkeys(said, 1)})
    assert isinstance(NAMES, Shown)
    return {*NAMES.behind(look, EDGE)}


def test_a_renamed_device_makes_the_weeks_stale_that_show_it() -> None:
    assert behind(PHONE, TABLET) == set()
    assert behind(PHONE, TABLET, ("watch", "3", "Watch")) == set(), "no week shows it"
    assert behind(PHONE, ("tablet", "2", "Renamed")) == {NEXT_WEEK}
    assert behind(("phone", "1", "Renamed"), TABLET) == {WEEK, NEXT_WEEK}
    assert behind() == set(), "nothing says what devices are called"
