"""A table that repeats what another one says is stale while it shows something else; no Spark.

Pattern: Denormalizer (:mod:`blogdata.planning.reaches`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from blogdata.lake.commit import WHOLE_TABLE, Entry
from blogdata.planning.reaches import Shown
from blogdata.publish.contract import Edge
from quality.contracts import CONTRACTS
from quality.contracts.visits_model import DEVICES

WEEK, NEXT_WEEK = "2026-01-05", "2026-01-12"
BIG = CONTRACTS["gold.visits_obt"]
(NAMES,) = [read.reach for read in BIG.reads if read.dataset == DEVICES]
EDGE = Edge(above=DEVICES, below=BIG)
PHONE, TABLET = ("phone", "1", "Phone"), ("tablet", "2", "Tablet")


@dataclass(frozen=True)
class Published:
    """The newest publications of both tables, each partition with the names of devices that it has."""

    names: Mapping[str, Mapping[str, tuple[tuple[str, ...], ...]]]

    def published(self, dataset: str) -> Mapping[str, Entry]:
        """Return the newest publications."""
        return {
            key: Entry(
                dataset=dataset,
                partition=key,
                version=1,
                rows_in=1,
                rows_out=1,
                reasons={},
                breakdowns={"names": dict.fromkeys(names, 1)},
            )
            for key, names in self.names.get(dataset, {}).items()
        }


def behind(*said: tuple[str, ...]) -> set[str]:
    """Name the weeks that are stale when the devices are called so: one has the phone, the other one has both."""
    shown = {WEEK: (PHONE,), NEXT_WEEK: (PHONE, TABLET)}
    look: Any = Published({BIG.dataset: shown, **({DEVICES: {WHOLE_TABLE: said}} if said else {})})
    assert isinstance(NAMES, Shown)
    return {*NAMES.behind(look, EDGE)}


def test_a_renamed_device_makes_the_weeks_stale_that_show_it() -> None:
    assert behind(PHONE, TABLET) == set()
    assert behind(PHONE, TABLET, ("watch", "3", "Watch")) == set(), "no week shows it"
    assert behind(PHONE, ("tablet", "2", "Renamed")) == {NEXT_WEEK}
    assert behind(("phone", "1", "Renamed"), TABLET) == {WEEK, NEXT_WEEK}
    assert behind() == set(), "nothing says what devices are called"
