"""Which partitions each reach of few datasets finds stale, and which a replay reaches; without Spark.

Patterns: Aligned Fan-In, Denormalizer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from assets.gold.returning_visitors import recomputed
from blogdata.contract.contract import Contract, Edge
from blogdata.contract.partitions import Grain, finer
from blogdata.contract.publication import WHOLE_TABLE, Entry
from blogdata.contract.schema import Partitioning
from blogdata.planning.reaches import Carried, Ended, Span
from quality.contracts import CONTRACTS
from quality.contracts.visits_model import DEVICES, VIEWS
from toy import entry


@dataclass
class Look:
    """Publications in place of a snapshot."""

    entries: list[Entry] = field(default_factory=list)

    def publish(self, dataset: str, version: int, *keys: str, rows: int = 1, **info: Any) -> None:
        self.entries += [entry(dataset, key, version, rows, **info) for key in keys]

    def published(self, dataset: str) -> Mapping[str, Entry]:
        return {entry.partition: entry for entry in self.history(dataset)}

    def history(self, dataset: str) -> list[Entry]:
        return [entry for entry in self.entries if entry.dataset == dataset]


def behind(look: Any, edge: Edge) -> list[str]:
    (reach,) = (read.reach for read in edge.below.reads if read.dataset == edge.above)
    return sorted(reach.behind(look, edge))


def reached(look: Any, edge: Edge, *keys: str) -> list[str]:
    (reach,) = (read.reach for read in edge.below.reads if read.dataset == edge.above)
    return sorted(reach.reached(look, edge, {edge.above: dict.fromkeys(keys, "")}, {}))


JOINED = CONTRACTS["silver.visits_with_ads"]
ADS, VISITS = (Edge(above=name, below=JOINED) for name in ("silver.ads", "silver.visits"))
NINE, TEN, ELEVEN, TWELVE, THIRTEEN = (f"2026-01-05T{hour:02}" for hour in range(9, 14))


def test_late_rows_outdate_the_neighbour_they_may_reach() -> None:
    look = Look()
    look.publish("silver.ads", 1, TEN, ELEVEN, TWELVE)
    look.publish("silver.visits", 1, NINE, TEN, ELEVEN, TWELVE)
    look.publish(JOINED.dataset, 1, TEN, ELEVEN, TWELVE, inputs={"silver.ads": 1, "silver.visits": 1})
    assert behind(look, ADS) == behind(look, VISITS) == []
    look.publish("silver.ads", 2, ELEVEN)
    look.publish("silver.visits", 2, TWELVE)
    assert behind(look, ADS) == behind(look, VISITS) == [ELEVEN, TWELVE]
    # The hour after the newest joined one is joined on its own, and makes the one before stale.
    look.publish("silver.visits", 3, THIRTEEN)
    assert behind(look, VISITS) == [ELEVEN, TWELVE, THIRTEEN]
    assert (reached(look, ADS, ELEVEN), reached(look, VISITS, ELEVEN)) == ([ELEVEN, TWELVE], [TEN, ELEVEN])
    assert reached(look, VISITS, NINE) == []


CARRIED = Carried(measure="pending")
HOURLY = Partitioning(column="hour", grain=Grain.HOUR)
OPEN = Contract(dataset="toy.open", description="", owner="team:toy", columns=(), partitioning=HOURLY)


class Pending(Look):
    """A dataset whose hours continue from what the one before has left pending."""

    def commit(self, **left: int) -> Pending:
        """Publish some hours in one commit, as a step does; h9=5 leaves 5 pending."""
        pending = {f"2026-01-05T{int(name[1:]):02}": digest for name, digest in left.items()}
        read = CARRIED.read(self.published(OPEN.dataset), frozenset(pending), Grain.HOUR)
        version = len({entry.version for entry in self.entries})
        found = Pending(entries=[*self.entries])
        for hour, digest in pending.items():
            found.publish(OPEN.dataset, version, hour, measures={"pending": digest}, landed=read[hour])
        return found

    def stale(self) -> set[int]:
        look: Any = self
        return {int(key[-2:]) for key in CARRIED.behind(look, Edge(above=OPEN.dataset, below=OPEN))}


def test_an_hour_is_stale_if_it_has_read_other_pending_rows_than_are_there() -> None:
    three = Pending().commit(h9=5, h10=6, h11=7)
    changed = three.commit(h9=4)
    assert changed.stale() == {10}
    assert changed.commit(h10=6).stale() == set()
    assert changed.commit(h10=8).stale() == {11}
    assert three.commit(h9=5).stale() == changed.commit(h9=5).stale() == set(), "the same rows are pending"


def test_a_missing_hour_must_close_what_is_pending() -> None:
    gap = Pending().commit(h9=5, h12=0)
    assert gap.stale() == {10}
    assert gap.commit(h10=3).stale() == {11}
    assert gap.commit(h10=0).stale() == set()


def test_scattered_hours_are_stale_again_in_turn() -> None:
    spread = Pending().commit(h5=1, h6=1, h7=1, h8=1).commit(h5=2, h8=2)
    for hour in (6, 7):
        assert spread.stale() == {hour}
        spread = spread.commit(**{f"h{hour}": 2})
    assert spread.stale() == {8}


WEEK = "2026-01-05"
*HOURS, LAST = finer(WEEK, Grain.WEEK, Grain.HOUR)
OF_WEEKS = Edge(above="silver.visits_enriched", below=CONTRACTS[VIEWS])


@pytest.fixture
def hours() -> Look:
    """All hours of a week but the last one, and one of the next."""
    look = Look()
    look.publish(OF_WEEKS.above, 0, *HOURS, "2026-01-12T00")
    return look


def test_a_week_waits_for_its_last_hour(hours: Look) -> None:
    assert behind(hours, OF_WEEKS) == []
    # An hour without a page view counts: its empty delivery was flagged.
    hours.publish(OF_WEEKS.above, 1, LAST, rows=0)
    assert behind(hours, OF_WEEKS) == [WEEK]
    hours.publish(VIEWS, 0, WEEK, inputs={OF_WEEKS.above: 1})
    assert behind(hours, OF_WEEKS) == []
    hours.publish(OF_WEEKS.above, 2, HOURS[7], rows=2)
    assert behind(hours, OF_WEEKS) == [WEEK]


def test_a_replay_reaches_the_weeks_that_are_complete_with_it(hours: Look) -> None:
    assert reached(hours, OF_WEEKS, HOURS[0]) == []
    assert reached(hours, OF_WEEKS, LAST, "2026-01-12T00") == [WEEK]


RETURNING = Edge(above="gold.audience_hourly", below=CONTRACTS["gold.returning_visitors"])
LAST_TWO = Ended(weeks=2, newest="newest_week")
FIRST, SECOND, THIRD, FOURTH = "2026-01-05", "2026-01-12", "2026-01-19", "2026-01-26"


class Weeks(Look):
    """Hours of visitors, and the table of the weeks that have ended."""

    def hours(self, version: int, *hours: str, rows: int = 1) -> None:
        self.publish(RETURNING.above, version, *hours, rows=rows)

    def refresh(self, read: int, newest: str) -> None:
        measures = {"newest_week": newest}
        self.publish(RETURNING.below.dataset, 0, WHOLE_TABLE, inputs={RETURNING.above: read}, measures=measures)

    def is_stale(self) -> bool:
        look: Any = self
        return bool(LAST_TWO.behind(look, RETURNING))

    def span(self) -> Span:
        found = LAST_TWO.span(self.published(RETURNING.above))
        assert found is not None
        return found


def test_a_week_has_ended_when_an_hour_of_a_later_one_has_rows() -> None:
    look = Weeks()
    assert not look.is_stale()
    look.hours(1, f"{FIRST}T10", f"{FIRST}T11")
    look.hours(2, f"{SECOND}T00", rows=0)
    assert not look.is_stale()
    look.hours(3, f"{SECOND}T01")
    assert look.is_stale()


@pytest.mark.parametrize(
    ("hour", "rows", "is_stale"),
    [(f"{SECOND}T11", 1, False), (f"{FIRST}T23", 1, True), (f"{FIRST}T11", 0, True)],
    ids=["of the week that goes on", "of an ended week", "that lost its rows"],
)
def test_a_table_of_ended_weeks_is_stale_by_their_hours_only(hour: str, rows: int, is_stale: bool) -> None:
    look = Weeks()
    look.hours(1, f"{FIRST}T10", f"{FIRST}T11", f"{SECOND}T10")
    look.refresh(1, FIRST)
    assert not look.is_stale()
    look.hours(2, hour, rows=rows)
    assert look.is_stale() == is_stale


def test_an_old_week_is_computed_again_when_the_newest_one_loses_its_rows() -> None:
    """The table has dropped it, and none of its hours changed since: without it the page views would not add up."""
    look = Weeks()
    look.hours(1, *(f"{week}T10" for week in (FIRST, SECOND, THIRD, FOURTH)))
    assert reached(look, RETURNING, f"{FOURTH}T10") == reached(look, RETURNING) == []
    assert reached(look, RETURNING, f"{THIRD}T10", f"{FOURTH}T10") == [WHOLE_TABLE]
    shown = {SECOND, THIRD}
    assert not recomputed(look.span().hours, [], shown)
    look.hours(3, f"{FOURTH}T10", rows=0)
    assert look.span().first == FIRST
    assert recomputed(look.span().hours, [], shown) == {FIRST}
    assert recomputed(look.span().hours, [f"{SECOND}T10"], shown) == {FIRST, SECOND}


REQUESTS = Edge(above="bronze.visits", below=CONTRACTS["gold.requests_daily"])


def arrive(look: Look, version: int, arrival: str, lines: Mapping[str, int]) -> None:
    """Publish an arrival with log lines of some hours, each hour with a page view and filtered lines."""
    counts: dict[tuple[str | None, ...], int] = {}
    for hour, rows in lines.items():
        counts |= {(hour, None, "combined"): 1, (hour, "asset", "combined"): rows - 1}
    look.publish("bronze.visits", version, arrival, rows=sum(lines.values()), breakdowns={"event_hours": counts})


def test_a_day_of_requests_is_behind_until_it_has_read_all_that_arrived_for_its_hours() -> None:
    look, (monday, tuesday) = Look(), ("2026-01-05", "2026-01-06")
    arrive(look, 0, f"{monday}T23", {f"{monday}T23": 5})
    arrive(look, 1, f"{tuesday}T00", {f"{monday}T23": 2, f"{tuesday}T00": 3})
    assert behind(look, REQUESTS) == reached(look, REQUESTS, f"{tuesday}T00") == [monday, tuesday]
    for day, rows in ((monday, 7), (tuesday, 3)):
        look.publish("gold.requests_daily", 0, day, rows=rows, inputs={"bronze.visits": 1})
    assert behind(look, REQUESTS) == []
    arrive(look, 2, f"{tuesday}T09", {f"{monday}T04": 4})
    assert behind(look, REQUESTS) == [monday, tuesday], "Tuesday has one more present hour"


BIG = Edge(above=DEVICES, below=CONTRACTS["gold.visits_obt"])
PHONE, TABLET, WATCH = ("phone", "1", "Phone"), ("tablet", "2", "Tablet"), ("watch", "3", "Watch")


@pytest.mark.parametrize(
    ("said", "stale"),
    [((), []), ((PHONE, TABLET, WATCH), []), ((PHONE, ("tablet", "2", "Renamed")), ["2026-01-12"])],
)
def test_a_renamed_device_makes_the_weeks_stale_that_show_it(said: tuple[Any, ...], stale: list[str]) -> None:
    look = Look()
    for week, names in (("2026-01-05", (PHONE,)), ("2026-01-12", (PHONE, TABLET))):
        look.publish(BIG.below.dataset, 1, week, breakdowns={"names": dict.fromkeys(names, 1)})
    if said:
        look.publish(DEVICES, 1, WHOLE_TABLE, breakdowns={"names": dict.fromkeys(said, 1)})
    assert behind(look, BIG) == stale
