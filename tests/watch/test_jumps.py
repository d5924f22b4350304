"""Shares far from their own history are found; weekly rhythm, sessions and small hours are no jump."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blogdata.contract.partitions import Grain
from blogdata.patterns.quality.online_observer import BOUND, LEAST_DEVIATION, PAST, Jump, Point, jumps

MEASURES = ("referral", "ad_id", "network_type", "login")
START = datetime(2026, 1, 5)  # noqa: DTZ001 - used for keys only; a Monday


def recorded(site: str, column: str) -> list[Point]:
    """Compute the share of a column over three weeks of hours, from simulated visits of a site."""
    with (Path(__file__).parent / f"{site}.csv").open(encoding="utf-8") as file:
        return [
            Point(partition=row["hour"], value=int(row[column]) / int(row["rows"]), rows=int(row["rows"]))
            for row in csv.DictReader(file)
        ]


def hours(count: int, share: Callable[[datetime], float], rows: int = 5000) -> list[Point]:
    moments = [START + timedelta(hours=number) for number in range(count)]
    return [Point(partition=f"{moment:%Y-%m-%dT%H}", value=share(moment), rows=rows) for moment in moments]


def judged(points: Sequence[Point], partitions: Sequence[str] | None = None) -> list[Jump]:
    chosen = [point.partition for point in points] if partitions is None else partitions
    return jumps("share", points, chosen, grain=Grain.HOUR)


def after(past: Sequence[Point], value: float, rows: int) -> list[Jump]:
    """Judge one more hour after a history."""
    last = Point(partition="2027-01-01T00", value=value, rows=rows)
    return judged([*past, last], [last.partition])


def wobbling(count: int, middle: float) -> list[Point]:
    return hours(count, lambda moment: middle + (moment.hour % 5 - 2) / 200)


@pytest.mark.parametrize("site", ["quiet_site", "busy_site"])
@pytest.mark.parametrize("column", MEASURES)
def test_three_healthy_weeks_have_no_jump(site: str, column: str) -> None:
    assert judged(recorded(site, column)) == []


@pytest.mark.parametrize(("site", "column"), [("quiet_site", "referral"), ("busy_site", "login")])
def test_a_column_null_for_everybody_is_found(site: str, column: str) -> None:
    points = recorded(site, column)
    busy = [number for number, point in enumerate(points) if point.rows >= 100]
    for number in (busy[30], busy[200], busy[-1]):
        faulty = [*points[:number], replace(points[number], value=1.0), *points[number + 1 :]]
        (found,) = judged(faulty)
        assert (found.partition, found.found) == (points[number].partition, 1.0)
        assert found.usual < 0.8


def test_a_weekly_rhythm_is_no_jump() -> None:
    weekly = hours(24 * 21, lambda moment: (0.45 if moment.weekday() >= 5 else 0.3) + (moment.hour % 5 - 2) / 200)
    assert judged(weekly) == []
    # The same change on a working day is a jump, once a week of history is known.
    assert after(wobbling(PAST, 0.3), 0.45, 5000) != []


def test_few_rows_are_judged_by_their_sampling_error() -> None:
    past = wobbling(PAST, 0.08)
    assert after(past, 2 / 112, 112) == []
    (found,) = after(past, 90 / 5000, 5000)
    assert (found.found, round(found.usual, 2)) == (0.018, 0.08)


def test_rows_that_come_in_groups_are_no_jump() -> None:
    # All rows of a session are null in this column: the busy site's history shows the variation.
    past = recorded("busy_site", "ad_id")
    worst = min(past, key=lambda point: point.value or 1)
    assert (worst.partition, worst.rows, round(worst.value or 0, 3)) == ("2026-01-24T03", 457, 0.748)
    assert judged(past, [worst.partition]) == []
    assert judged([replace(point, rows=50_000) for point in past], [worst.partition]) != []


@given(st.floats(0, 1), st.integers(1, PAST), st.integers(100, 10**9))
def test_a_steady_share_never_jumps(share: float, count: int, rows: int) -> None:
    steady = min(1.0, share + (BOUND - 0.1) * LEAST_DEVIATION)
    assert after(hours(count, lambda moment: share, rows), steady, rows) == []
