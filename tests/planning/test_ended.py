"""A table of the weeks that have ended is stale if one of their hours changes, or another week ends; without Spark."""

from __future__ import annotations

from typing import Any

import pytest

from assets.gold.returning_visitors import anew
from blogdata.lake.commit import WHOLE_TABLE
from blogdata.planning.reaches import Ended, Span
from blogdata.publish.contract import Edge
from planning.looks import Look
from quality.contracts import CONTRACTS

BELOW = CONTRACTS["gold.returning_visitors"]
EDGE = Edge(above="gold.audience_hourly", below=BELOW)
REACH = Ended(weeks=2, newest="newest_week")
FIRST, SECOND, THIRD, FOURTH = "2026-01-05", "2026-01-12", "2026-01-19", "2026-01-26"


class Published(Look):
    """The publications of both datasets."""

    def hours(self, version: int, *hours: str, rows: int = 1) -> None:
        self.publish(EDGE.above, version, *hours, rows=rows)

    def refresh(self, read: int, newest: str) -> None:
        self.publish(BELOW.dataset, 0, WHOLE_TABLE, inputs={EDGE.above: read}, measures={"newest_week": newest})


@pytest.fixture
def look() -> Any:
    found = Published()
    found.hours(1, f"{FIRST}T10", f"{SECOND}T10")
    return found


def is_stale(look: Any) -> bool:
    return bool(REACH.behind(look, EDGE))


def test_a_week_has_ended_when_an_hour_of_a_later_one_has_rows() -> None:
    look: Any = Published()
    assert not is_stale(look)
    look.hours(1, f"{FIRST}T10", f"{FIRST}T11")
    look.hours(2, f"{SECOND}T00", rows=0)
    assert not is_stale(look)
    look.hours(3, f"{SECOND}T01")
    assert is_stale(look)


def test_hours_of_the_week_that_has_not_ended_make_nothing_stale(look: Any) -> None:
    look.refresh(1, FIRST)
    assert not is_stale(look)
    look.hours(2, f"{SECOND}T11")
    assert not is_stale(look)
    look.hours(3, f"{FIRST}T23")
    assert is_stale(look)


def test_an_hour_that_lost_its_rows_is_a_change(look: Any) -> None:
    look.refresh(1, FIRST)
    look.hours(2, f"{FIRST}T10", rows=0)
    look.hours(2, f"{FIRST}T11")
    assert is_stale(look)


def test_an_old_week_is_computed_again_when_the_newest_one_loses_its_rows(look: Any) -> None:
    """The table has dropped it, and none of its hours changed since: without it the page views would not add up."""
    look.hours(2, f"{THIRD}T00", f"{FOURTH}T00")
    shown = {SECOND, THIRD}
    assert not anew(span(look).hours, [], shown)
    look.hours(3, f"{FOURTH}T00", rows=0)
    assert span(look).first == FIRST
    assert anew(span(look).hours, [], shown) == {FIRST}
    assert anew(span(look).hours, [f"{SECOND}T10"], shown) == {FIRST, SECOND}


def span(look: Any) -> Span:
    found = REACH.span(look.published(EDGE.above))
    assert found is not None
    return found


def test_a_replay_reaches_the_table_by_the_hours_it_reads(look: Any) -> None:
    look.hours(2, f"{THIRD}T00", f"{FOURTH}T00")

    def reached(*hours: str) -> list[str]:
        return list(REACH.reached(look, EDGE, {EDGE.above: dict.fromkeys(hours, "")}, {}))

    assert reached(f"{THIRD}T00", f"{FOURTH}T00") == [WHOLE_TABLE]
    assert reached(f"{FIRST}T10") == reached(f"{FOURTH}T00") == reached() == []
    assert reached("2026-02-02T00", f"{FOURTH}T00") == [WHOLE_TABLE]
