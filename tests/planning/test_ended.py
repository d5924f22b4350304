"""A table of the weeks that have ended is stale if one of their hours changes, or another week ends; without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from blogdata.lake.commit import WHOLE_TABLE, Entry
from blogdata.planning.reaches import Ended, Span
from blogdata.publish.contract import Edge
from quality.contracts import CONTRACTS

BELOW = CONTRACTS["gold.returning_visitors"]
EDGE = Edge(above="gold.audience_hourly", below=BELOW)
REACH = Ended(weeks=2, newest="newest_week")
FIRST, SECOND, THIRD, FOURTH = "2026-01-05", "2026-01-12", "2026-01-19", "2026-01-26"


@dataclass
class Look:
    """The publications of both datasets."""

    hours: dict[str, Entry] = field(default_factory=dict)
    table: dict[str, Entry] = field(default_factory=dict)

    def publish(self, version: int, *hours: str, rows: int = 1) -> None:
        named: Any = {"dataset": EDGE.above, "version": version, "rows_in": rows, "rows_out": rows, "reasons": {}}
        self.hours.update({hour: Entry(partition=hour, **named) for hour in hours})

    def refresh(self, read: int, newest: str) -> None:
        self.table[WHOLE_TABLE] = Entry(
            dataset=BELOW.dataset,
            partition=WHOLE_TABLE,
            version=0,
            rows_in=1,
            rows_out=1,
            reasons={},
            inputs={EDGE.above: read},
            measures={"newest_week": newest},
        )

    def published(self, dataset: str) -> Mapping[str, Entry]:
        return self.hours if dataset == EDGE.above else self.table


@pytest.fixture
def look() -> Any:
    found = Look()
    found.publish(1, f"{FIRST}T10", f"{SECOND}T10")
    return found


def is_stale(look: Any) -> bool:
    return bool(REACH.behind(look, EDGE))


def test_a_week_has_ended_when_an_hour_of_a_later_one_has_rows() -> None:
    look: Any = Look()
    assert not is_stale(look)
    look.publish(1, f"{FIRST}T10", f"{FIRST}T11")
    look.publish(2, f"{SECOND}T00", rows=0)
    assert not is_stale(look)
    look.publish(3, f"{SECOND}T01")
    assert is_stale(look)


def test_hours_of_the_week_that_has_not_ended_make_nothing_stale(look: Any) -> None:
    look.refresh(1, FIRST)
    assert not is_stale(look)
    look.publish(2, f"{SECOND}T11")
    assert not is_stale(look)
    look.publish(3, f"{FIRST}T23")
    assert is_stale(look)


def test_an_hour_that_lost_its_rows_is_a_change(look: Any) -> None:
    look.refresh(1, FIRST)
    look.publish(2, f"{FIRST}T10", rows=0)
    look.publish(2, f"{FIRST}T11")
    assert is_stale(look)


def span(look: Any) -> Span:
    found = REACH.span(look.hours)
    assert found is not None
    return found


def test_a_replay_reaches_the_table_by_the_hours_it_reads(look: Any) -> None:
    look.publish(2, f"{THIRD}T00", f"{FOURTH}T00")

    def reached(*hours: str) -> list[str]:
        return list(REACH.reached(look, EDGE, {EDGE.above: dict.fromkeys(hours, "")}, {}))

    assert reached(f"{THIRD}T00", f"{FOURTH}T00") == [WHOLE_TABLE]
    assert reached(f"{FIRST}T10") == reached(f"{FOURTH}T00") == reached() == []
    assert reached("2026-02-02T00", f"{FOURTH}T00") == [WHOLE_TABLE]
