"""The lag of a reader behind a table; without Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any, cast

from blogdata.lake.commit import Entry
from blogdata.planning.offsets import TableOffsets
from blogdata.planning.reach import Same
from blogdata.planning.snapshot import Snapshot
from blogdata.publish.contract import Edge, Look, Read, Wanted
from quality.contracts import CONTRACTS

ABOVE, BELOW = "silver.visits", CONTRACTS["silver.visits_enriched"]
BEGAN = datetime(2026, 1, 5, tzinfo=timezone.utc)
EDGE = Edge(above=ABOVE, below=BELOW)


@dataclass(frozen=True)
class Counting(Same):
    """The reach `Same`, which counts how often each partition is asked for."""

    asked: Counter[str] = field(default_factory=Counter)

    def reached(self, look: Look, edge: Edge, wanted: Wanted, asked: Wanted) -> Mapping[str, str]:
        self.asked.update([*wanted[edge.above]])
        return super().reached(look, edge, wanted, asked)


@dataclass(frozen=True)
class Published:
    """A table with one version per hour, of which the reader has read nothing."""

    hours: int

    def history(self, dataset: str) -> Sequence[Entry]:
        assert dataset == ABOVE
        return [
            Entry(
                dataset=ABOVE,
                partition=f"{BEGAN + timedelta(hours=number):%Y-%m-%dT%H}",
                version=number,
                rows_in=1,
                rows_out=1,
                reasons={},
                committed_at=BEGAN + timedelta(hours=number, minutes=5),
            )
            for number in range(self.hours)
        ]

    def published(self, dataset: str) -> Mapping[str, Entry]:
        return {entry.partition: entry for entry in self.history(ABOVE)} if dataset == ABOVE else {}


def test_each_publication_is_examined_once() -> None:
    look, reach = cast(Any, Published(150)), Counting()
    ready = frozenset(look.published(ABOVE))
    offsets = TableOffsets(look=cast(Snapshot, look), edge=EDGE, read=Read(dataset=ABOVE, reach=reach), ready=ready)
    positions = offsets.positions()
    assert [(one.partition, one.behind) for one in positions] == [(key, 1) for key in sorted(ready)]
    assert positions[0].since == BEGAN + timedelta(minutes=5)
    assert set(reach.asked.values()) == {1}, "a reader behind by thousands of partitions is examined in linear time"
