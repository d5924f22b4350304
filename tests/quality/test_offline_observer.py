"""Offline Observer: a look profiles the periods with something new since the look before it; without Spark."""

from __future__ import annotations

from collections.abc import Mapping

from blogdata.lake.commit import WHOLE_TABLE, Entry
from blogdata.patterns.quality.drift import Profile
from blogdata.patterns.quality.offline_observer import unseen
from blogdata.publish.partitions import Grain

DAY, NEXT = "2026-01-05", "2026-01-06"


def published(versions: Mapping[str, int]) -> dict[str, Entry]:
    of = "silver.visits"
    return {
        key: Entry(dataset=of, partition=key, version=version, rows_in=1, rows_out=1, reasons={})
        for key, version in versions.items()
    }


def looked(period: str, version: int) -> Profile:
    return Profile(period=period, version=version, rows=1, columns={})


def test_only_periods_with_something_new_are_profiled() -> None:
    there = published({f"{DAY}T10": 3, f"{DAY}T11": 7, f"{NEXT}T00": 5})
    hours = {DAY: [f"{DAY}T10", f"{DAY}T11"], NEXT: [f"{NEXT}T00"]}
    assert unseen(there, [], Grain.HOUR) == hours
    assert unseen(there, [looked(DAY, 7), looked(NEXT, 7)], Grain.HOUR) == {}
    # A late hour makes its day one to be looked at again, with all of its hours; the newest look counts.
    looks = [looked(DAY, 4), looked(NEXT, 5), looked(NEXT, 2)]
    assert unseen(there, looks, Grain.HOUR) == {DAY: hours[DAY]}


def test_a_table_that_is_written_whole_is_one_period() -> None:
    there = published({WHOLE_TABLE: 4})
    assert unseen(there, [looked(WHOLE_TABLE, 3)], None) == {WHOLE_TABLE: [WHOLE_TABLE]}
    assert unseen(there, [looked(WHOLE_TABLE, 4)], None) == {}
