"""Distributed Aggregator: the gold counts equal those of a loop over the visits."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any

import pytest

from assets.gold.page_and_referral_stats import by_page, by_referrer
from assets.gold.visits_cube import counted as cube
from quality.contracts.page_views import CUBE_KEY

VISITS = (
    "event_date STRING, event_week STRING, device_type STRING, browser STRING, referral_host STRING,"
    " country STRING, page STRING, visit_id STRING, user_id STRING"
)


def some_visits(count: int = 600) -> list[tuple[Any, ...]]:
    draw = random.Random(3)
    return [
        (
            draw.choice(["2026-01-26", "2026-01-27"]),
            "2026-01-26",
            draw.choice(["phone", "", None, "unknown"]),
            draw.choice(["ff", None]),
            draw.choice(["direct", "a.example"]),
            draw.choice(["DE", "JP", None]),
            draw.choice(["/", "/a", "/b"]),
            f"v{draw.randrange(60)}",
            f"u{draw.randrange(20)}",
        )
        for _ in range(count)
    ]


def counted(rows: list[tuple[Any, ...]], places: list[int]) -> dict[Any, tuple[int, int, int]]:
    groups = defaultdict(list)
    for row in rows:
        groups[tuple(row[place] or "unknown" for place in places)].append(row)
    return {
        key: (len(found), len({row[7] for row in found}), len({row[8] for row in found}))
        for key, found in groups.items()
    }


def by_key(frame: Any, keys: int) -> dict[Any, tuple[int, int, int]]:
    rows = frame.collect()
    found = {tuple(row[:keys]): (row.events, row.visits, row.users) for row in rows}
    assert len(found) == len(rows)
    return found


@pytest.mark.parametrize(("period", "place"), [("event_date", 0), ("event_week", 1)])
def test_the_cube_equals_a_plain_count(spark: Any, period: str, place: int) -> None:
    rows = some_visits()
    frame = cube(spark.createDataFrame(rows, VISITS), (period, *CUBE_KEY))
    found = by_key(frame, 5)
    assert found == counted(rows, [place, 2, 3, 4, 5])
    assert sum(events for events, _, _ in found.values()) == len(rows)


def test_page_and_referral_statistics_equal_plain_counts(spark: Any) -> None:
    rows = some_visits()
    frame = spark.createDataFrame(rows, VISITS)
    assert by_key(by_page(frame), 2) == counted(rows, [0, 6])
    assert by_key(by_referrer(frame).withColumnRenamed("visitors", "users"), 2) == counted(rows, [0, 4])


def test_page_shares_of_a_day_sum_to_one(spark: Any) -> None:
    shares: dict[str, float] = defaultdict(float)
    for row in by_page(spark.createDataFrame(some_visits(), VISITS)).collect():
        shares[row.event_date] += row.share
    assert shares == pytest.approx({"2026-01-26": 1.0, "2026-01-27": 1.0})
