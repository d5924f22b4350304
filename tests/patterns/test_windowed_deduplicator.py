import random
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from blogdata.patterns.error_management.windowed_deduplicator import conflicting, deduplicate, first_come
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
    hours = sorted(draw.choices("0123", k=count))
    return [
        (
            draw.choice(["a", "b", "c", None]),
            draw.choice("xyz"),
            f"2026-01-31T0{hour}",
            number,
            draw.choice([b"1", b"2", None]),
        )
        for number, hour in enumerate(hours)
    ]


def test_winners_and_losers_equal_brute_force(spark: SparkSession) -> None:
    rows, winners, conflicts = random_rows(400), dict[tuple[Any, ...], list[Any]](), set[int]()
    for row in rows:
        first = winners.setdefault(row[:2], [*row, 0, 0])
        first[5] += 1
        if row[4] != first[4]:
            first[6] += 1
            conflicts.add(row[3])
    frame = frame_of(spark, rows)
    kept = {tuple(bytes(it) if isinstance(it, bytearray) else it for it in row) for row in winners_of(frame).collect()}
    assert kept == {*map(tuple, winners.values())}
    losers = conflicting(frame, key=KEY, order=ORDER, payload=F.col("raw"))
    assert losers.columns == frame.columns
    assert {row["source_offset"] for row in losers.collect()} == conflicts


def test_naive_dropping_neither_counts_nor_picks_first(spark: SparkSession) -> None:
    rows: list[Row] = [("a", "x", "2026-01-31T02", 0, b"later"), ("a", "x", "2026-01-31T01", 9, b"first")]
    frame = frame_of(spark, rows).coalesce(1)
    naive = frame.dropDuplicates(KEY).collect()
    kept = winners_of(frame).collect()
    assert bytes(naive[0]["raw"]) == b"later"
    assert bytes(kept[0]["raw"]) == b"first"
    assert (kept[0]["occurrences"], kept[0]["conflicts"]) == (2, 1)


@pytest.mark.usefixtures("usual_plans")
def test_one_shuffle_and_one_sort_are_enough(spark: SparkSession) -> None:
    plan = plan_of(winners_of(frame_of(spark, random_rows(5))))
    tree = plan.split("\n\n")[0]
    assert tree.count("Exchange") == 1
    assert tree.count("Sort") == 1
    assert "Python" not in plan


def test_batches_pick_the_same_winners_as_all_rows(spark: SparkSession) -> None:
    rows = random_rows(60)
    published: list[Row] = []
    verdicts: dict[int, str] = {}
    for batch in (rows[:25], rows[25:40], rows[40:]):
        frames = frame_of(spark, batch), frame_of(spark, published)
        judged = first_come(*frames, key=KEY, order=ORDER, payload=F.col("raw")).collect()
        assert len(judged) == len(batch), "every row, once"
        verdicts.update({row["source_offset"]: row["verdict"] for row in judged})
        published += [tuple(row)[:5] for row in judged if row["verdict"] == "first"]
    expected, winners = {}, dict[tuple[str | None, str], Row]()
    for row in rows:
        first = winners.setdefault(row[:2], row)
        expected[row[3]] = "first" if first is row else "duplicate" if first[4] == row[4] else "conflict"
    assert verdicts == expected
    assert set(expected.values()) == {"first", "duplicate", "conflict"}
