"""Which partitions only lack later slices, of any order of arrivals: those that have read all others as they are.

Pattern: Dynamic Late Data Integrator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blogdata.contract.contract import Edge
from blogdata.contract.publication import Added, Entry
from blogdata.ledger.events import EventLog
from blogdata.planning.reach import SAME, WITHIN, EventsOf
from blogdata.planning.snapshot import Snapshot
from blogdata.table.lake import Lake
from quality.contracts import CONTRACTS
from toy import entry

HOUR = "2026-01-05T02"
ARRIVALS = tuple(f"2026-01-05T{hour:02}" for hour in range(5))
EDGE = Edge(above="bronze.visits", below=CONTRACTS["silver.visits"])
NEWEST = 1000


class Published(Snapshot):
    def __init__(self, lines: Mapping[str, Mapping[str, Entry]], history: Sequence[Entry] = ()) -> None:
        super().__init__(Path("/nowhere"), EventLog(Lake(root="/nowhere")))
        self._lines, self._history = lines, history

    def published(self, dataset: str) -> Mapping[str, Entry]:
        return self._lines[dataset]

    def history(self, dataset: str) -> Sequence[Entry]:
        return self._history


def arrival(key: str, version: int, rows: int) -> Entry:
    counts: dict[tuple[str | None, ...], int] = {(HOUR, None, "json"): rows} if rows else {}
    return replace(integrated(rows, version), dataset=EDGE.above, partition=key, breakdowns={"event_hours": counts})


def integrated(rows: int, seen: int) -> Entry:
    return entry(EDGE.below.dataset, HOUR, seen, rows, inputs={EDGE.above: seen})


arrived = st.tuples(st.sampled_from(ARRIVALS), st.integers(0, 2))


@given(
    before=st.lists(arrived, max_size=5), after=st.lists(arrived, max_size=4), gone=st.sets(st.sampled_from(ARRIVALS))
)
def test_only_later_arrivals_may_be_new(
    before: Sequence[tuple[str, int]], after: Sequence[tuple[str, int]], gone: set[str]
) -> None:
    """An hour is integrated in the middle of publications of arrivals, of which some are taken back at the end."""
    read = {key: arrival(key, version, rows) for version, (key, rows) in enumerate(before)}
    seen = len(before)
    now = dict(read)
    for version, (key, rows) in enumerate(after, seen + 1):
        now[key] = arrival(key, version, rows)
    now = {key: entry for key, entry in now.items() if key not in gone}
    had, has = ({key: one for key, one in each.items() if one.rows_in} for each in (read, now))
    new = sorted(key for key in has if has[key] != had.get(key))
    expected = bool(new) and all(has.get(key) == had[key] for key in had) and all(key < new[0] for key in had)
    look = Published(
        {EDGE.above: now, EDGE.below.dataset: {HOUR: integrated(sum(e.rows_in for e in had.values()), seen)}}
    )
    found = EventsOf(breakdown="event_hours").came(look, EDGE, [HOUR], until=NEWEST)
    assert found == ({HOUR: new} if expected else {})


def test_what_is_published_after_the_pinned_version_is_not_added() -> None:
    arrivals = {key: arrival(key, version, 1) for version, key in enumerate(ARRIVALS)}
    look = Published({EDGE.above: arrivals, EDGE.below.dataset: {HOUR: integrated(2, 1)}})
    reach = EventsOf(breakdown="event_hours")
    assert reach.came(look, EDGE, [HOUR], until=4) == {HOUR: list(ARRIVALS[2:])}
    assert reach.came(look, EDGE, [HOUR], until=3) == {}


@pytest.mark.parametrize(
    ("after", "seen", "until", "expected"),
    [(3, 3, 7, True), (3, 6, 7, True), (3, 2, 7, False), (3, 7, 7, False), (3, 3, 6, False), (None, 3, 7, False)],
)
def test_what_was_only_added_above_may_be_added_below(after: int | None, seen: int, until: int, expected: bool) -> None:
    edge = Edge(above="silver.visits", below=CONTRACTS["silver.visits_enriched"])
    added = None if after is None else Added(after=after, rows_before=1, slices=("late",), times=1)
    above = replace(integrated(2, 0), version=7, added=added)
    below = replace(integrated(1, 0), inputs={edge.above: seen})
    look = Published({edge.above: {HOUR: above}, edge.below.dataset: {HOUR: below}})
    found = SAME.came(look, edge, [HOUR], until=until)
    assert found == ({HOUR: ("late",)} if expected else {})


@pytest.mark.parametrize(
    ("delivered", "slices", "now", "due"),
    [
        (1, ("2026-01-06T00",), "2026-01-07T05", False),
        (1, ("2026-01-06T00",), "2026-01-07T06", True),
        (24, ("2026-01-06T00",), "2026-01-06T23", True),
        (1, ("2026-01-05T23", "2026-01-06T00"), "2026-01-06T02", True),
        (1, None, "2026-01-06T02", True),
    ],
    ids=["of a day that goes on", "that should have ended", "of a complete day", "of the day before", "no additions"],
)
def test_late_rows_of_an_earlier_day_are_due_once_a_day(
    monkeypatch: pytest.MonkeyPatch, delivered: int, slices: tuple[str, ...] | None, now: str, due: bool
) -> None:
    """An hour of the day that is being delivered is due at once for its day, and for its week with the day."""
    monkeypatch.setattr("blogdata.planning.clock.now", lambda: datetime.fromisoformat(f"{now}:00:00+00:00"))
    added = None if slices is None else Added(after=3, rows_before=1, slices=slices, times=1)
    hours = {HOUR: replace(integrated(2, 0), version=7, added=added), "2026-01-06T00": arrival("", 8, 1)}
    arrivals = {f"2026-01-06T{hour:02}": arrival("", hour, 1) for hour in range(delivered)}
    for name, periods in (("daily", ["2026-01-05", "2026-01-06"]), ("weekly", ["2026-01-05"])):
        edge = Edge(above="silver.visits_enriched", below=CONTRACTS[f"gold.visits_cube_{name}"])
        below = {key: replace(integrated(1, 0), inputs={edge.above: 3}) for key in periods}
        lines = {edge.above: hours, edge.below.dataset: below, "bronze.visits": arrivals}
        look = Published(lines, [arrival("2026-01-06T00", 8, 1)])
        (reach,) = (read.reach for read in edge.below.reads)
        assert [*reach.behind(look, edge)] == (periods if due else periods[1:])
        assert WITHIN.behind(look, edge).keys() == {*periods}
        replaced = Published(lines, [arrival("2026-01-06T00", version, 1) for version in (2, 8)])
        assert periods[-1] in reach.behind(replaced, edge)
        replaced = Published(lines, [replace(hours[HOUR], version=5, added=None), hours[HOUR]])
        assert periods[0] in reach.behind(replaced, edge), "what was replaced before rows were added is due"


@given(
    commits=st.lists(st.tuples(st.sampled_from(ARRIVALS[:3]), st.sampled_from(["replaces", "adds", "repeats"]))),
    seen=st.integers(-1, 9),
)
def test_a_period_with_what_came_has_all_rows_of_its_hours_once(commits: Sequence[tuple[str, str]], seen: int) -> None:
    """A commit replaces an hour by one row, adds a row as a slice, or writes it again; a row is its commit's number."""
    edge, history = Edge(above="silver.visits_enriched", below=CONTRACTS["gold.visits_weekly"]), list[Entry]()
    now: dict[str, Entry] = {}
    rows: dict[str, set[int]] = {}
    read = set[int]()
    for version, (hour, does) in enumerate(commits):
        before, had = now.get(hour), rows.get(hour, set())
        added = None
        if before and does != "replaces":
            added = Added(after=before.changed, rows_before=len(had), slices=(f"at{version}",), times=1)
        rows[hour] = had if added and does == "repeats" else {*(had if added else ()), version}
        now[hour] = replace(integrated(len(rows[hour]), 0), partition=hour, version=version, added=added)
        history.append(now[hour])
        read = set().union(*rows.values()) if version <= seen else read
    week = replace(integrated(1, 0), partition="2026-01-05", inputs={edge.above: seen})
    look = Published({edge.above: now, edge.below.dataset: {week.partition: week}}, history)
    came = WITHIN.came(look, edge, [week.partition], until=NEWEST).get(week.partition)
    newer = [entry for entry in now.values() if entry.changed > seen]
    if came is None:
        known = {entry.partition for entry in history if entry.version <= seen}
        # What it has read is no part of the history: the table was begun anew.
        assert (
            not newer
            or not known
            or any(one.partition in known and not (one.added and one.added.after <= seen) for one in newer)
        )
        assert newer or read == set().union(*rows.values())
    else:
        slices = [part.split(" at") for part in came]
        lacked = [row for hour, *of in slices for row in (rows[hour] & set(map(int, of)) if of else rows[hour])]
        assert sorted([*read, *lacked]) == sorted(set().union(*rows.values()))


def test_a_period_is_replaced_that_lacks_an_hour_without_rows_or_has_read_a_lost_table() -> None:
    edge = Edge(above="silver.visits_enriched", below=CONTRACTS["gold.visits_weekly"])

    def came(rows: int, seen: int) -> Mapping[str, Sequence[str]]:
        history = [
            replace(integrated(each, 0), partition=key, version=version)
            for key, version, each in ((ARRIVALS[0], 5, 1), (ARRIVALS[1], 6, rows))
        ]
        week = replace(integrated(1, 0), partition="2026-01-05", inputs={edge.above: seen})
        above = {entry.partition: entry for entry in history}
        look = Published({edge.above: above, edge.below.dataset: {week.partition: week}}, history)
        return WITHIN.came(look, edge, [week.partition], until=NEWEST)

    assert came(rows=1, seen=5) == {"2026-01-05": [ARRIVALS[1]]}
    assert came(rows=0, seen=5) == came(rows=1, seen=4) == {}
