"""The version from which a table of full deliveries is continued, by the deliveries each version contains."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from blogdata.contract.publication import Entry
from blogdata.planning.reach import Continued, continued

DAYS = [f"2026-01-0{day}" for day in range(1, 7)]
Loads = list[tuple[str, int]]


def load(number: int, day: str, usable: int) -> Entry:
    figures: dict[str, Any] = {"rows_in": 3, "rows_out": 3, "reasons": {}, "measures": {"dead": 3 - usable}}
    return Entry(dataset="bronze.users", partition=day, version=number, **figures)


def table(number: int, read: int) -> Entry:
    figures: dict[str, Any] = {"rows_in": 1, "rows_out": 1, "reasons": {}, "inputs": {"bronze.users": read}}
    return Entry(dataset="silver.users", partition="", version=number, **figures)


def at(loads: Loads, read: int) -> dict[str, int]:
    """Map days whose newest delivery has usable rows to its version, as of one load."""
    newest = {day: (number, usable) for number, (day, usable) in enumerate(loads[: read + 1])}
    return {day: number for day, (number, usable) in newest.items() if usable}


def chosen(loads: Loads, reads: list[int]) -> list[Continued]:
    own = [table(number, read) for number, read in enumerate(reads)]
    entries = [load(number, day, usable) for number, (day, usable) in enumerate(loads)]
    return list(continued(own, entries, at(loads, len(loads) - 1)))


@settings(max_examples=300)
@given(
    st.lists(st.tuples(st.sampled_from(DAYS), st.sampled_from([0, 1, 2])), min_size=1, max_size=12),
    st.lists(st.integers(min_value=0, max_value=11), max_size=6),
)
def test_a_version_is_continued_if_only_later_deliveries_are_left(loads: Loads, reads: list[int]) -> None:
    """In any order, with late, repeated, corrected and wholly rejected deliveries."""
    reads = sorted(read for read in reads if read < len(loads))
    now, expected = at(loads, len(loads) - 1), []
    for number, read in reversed(list(enumerate(reads))):
        then = at(loads, read)
        left = sorted(now.items() - then.items())
        # First its own deliveries, then only later ones: the order of a computation from all deliveries.
        if then and sorted(now.items()) == [*sorted(then.items()), *left]:
            expected.append(Continued(version=number, last=max(then), left=tuple(day for day, _ in left)))
    assert chosen(loads, reads) == expected
