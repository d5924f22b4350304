"""The first row of an identity wins, deterministically, and every other row is counted."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from blogdata.patterns.error_management.windowed_deduplicator import (
    conflicting,
    deduplicate,
    first_come,
)
from plans import plan_of

SCHEMA = "visit_id string, page string, arrival_hour string, source_offset bigint, raw binary"
KEY = ["visit_id", "page"]
ORDER = ["arrival_hour", "source_offset"]
Row = tuple[str | None, str, str, int, bytes | None]


def frame_of(spark: SparkSession, rows: list[Row]) -> DataFrame:
    return spark.createDataFrame(rows, SCHEMA)


def winners_of(frame: DataFrame) -> DataFrame:
    return deduplicate(frame, key=KEY, order=ORDER, payload=F.col("raw"))


def random_rows(count: int) -> list[Row]:
    draw = random.Random(5)
    return [
        (
            draw.choice(["a", "b", "c", None]),
            draw.choice("xyz"),
            f"2026-01-31T0{draw.randrange(4)}",
            number,
            draw.choice([b"1", b"2", None]),
        )
        for number in range(count)
    ]


def by_hand(rows: list[Row]) -> set[tuple[Any, ...]]:
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        groups[row[:2]].append(row)
    found = set()
    for members in groups.values():
        first = min(members, key=lambda row: (row[2], row[3]))
        found.add((*first, len(members), sum(row[4] != first[4] for row in members)))
    return found


def test_winners_and_their_counts_equal_brute_force(spark: SparkSession) -> None:
    rows = random_rows(400)
    found = {
        (*row[:4], bytes(row[4]) if row[4] is not None else None, *row[5:])
        for row in winners_of(frame_of(spark, rows)).collect()
    }
    assert found == by_hand(rows)


def test_naive_dropping_neither_counts_nor_picks_first(spark: SparkSession) -> None:
    rows: list[Row] = [("a", "x", "2026-01-31T02", 0, b"later"), ("a", "x", "2026-01-31T01", 9, b"first")]
    frame = frame_of(spark, rows).coalesce(1)
    naive = frame.dropDuplicates(KEY).collect()
    kept = winners_of(frame).collect()
    assert bytes(naive[0]["raw"]) == b"later"
    assert bytes(kept[0]["raw"]) == b"first"
    assert (kept[0]["occurrences"], kept[0]["conflicts"]) == (2, 1)


def test_conflicting_rows_come_back_without_the_winner(spark: SparkSession) -> None:
    rows: list[Row] = [
        ("a", "x", "2026-01-31T01", 0, b"first"),
        ("a", "x", "2026-01-31T01", 1, b"other"),
        ("a", "x", "2026-01-31T02", 0, b"first"),
        (None, "x", "2026-01-31T01", 2, b"n1"),
        (None, "x", "2026-01-31T01", 3, None),
        ("b", "x", "2026-01-31T01", 4, b"alone"),
    ]
    frame = frame_of(spark, rows)
    losers = conflicting(frame, key=KEY, order=ORDER, payload=F.col("raw"))
    assert losers.columns == frame.columns
    assert sorted(row["source_offset"] for row in losers.collect()) == [1, 3]


@pytest.mark.usefixtures("usual_plans")
def test_one_shuffle_and_one_sort_are_enough(spark: SparkSession) -> None:
    plan = plan_of(winners_of(frame_of(spark, random_rows(5))))
    tree = plan.split("\n\n")[0]
    assert tree.count("Exchange") == 1
    assert tree.count("Sort") == 1
    assert "Python" not in plan


def test_batches_pick_the_same_winners_as_all_rows(spark: SparkSession) -> None:
    rows = sorted(random_rows(60), key=lambda row: (row[2], row[3]))
    published: list[Row] = []
    verdicts: dict[tuple[str, int], str] = {}
    for batch in (rows[:25], rows[25:40], rows[40:]):
        told = first_come(
            frame_of(spark, batch), frame_of(spark, published), key=KEY, order=ORDER, payload=F.col("raw")
        ).collect()
        assert len(told) == len(batch), "every row, once"
        verdicts.update({(row["arrival_hour"], row["source_offset"]): row["verdict"] for row in told})
        published += [tuple(row)[:5] for row in told if row["verdict"] == "first"]
    expected, winners = {}, dict[tuple[str | None, str], bytes | None]()
    for visit, page, hour, offset, raw in rows:
        known = (visit, page) in winners
        same = known and winners[visit, page] == raw
        winners.setdefault((visit, page), raw)
        expected[hour, offset] = "first" if not known else "duplicate" if same else "conflict"
    assert verdicts == expected
    assert set(expected.values()) == {"first", "duplicate", "conflict"}
