import random
from typing import Any

import pytest
from pyspark.sql import functions as F

from blogdata.patterns.data_value import distributed_aggregator
from blogdata.patterns.data_value.distributed_aggregator import SET, How, Measure
from plans import plan_of

ROWS = "a STRING, b STRING, who STRING, amount BIGINT"
ERROR = 1.04 / 2**6
"""Relative standard error of an approximate count."""
EXACT = (
    Measure(name="n"),
    Measure(name="known", column="who"),
    Measure(name="people", how=How.DISTINCT, column="who"),
    Measure(name="amounts", how=How.DISTINCT, column="amount"),
)


def skewed(count: int = 2_000) -> list[tuple[Any, ...]]:
    draw = random.Random(11)
    return [
        (
            "hot" if draw.random() < 0.9 else draw.choice(["x", None]),
            draw.choice(["1", "2", None]),
            draw.choice([None, *(f"p{n}" for n in range(50))]),
            draw.choice([None, *range(-5, 30)]),
        )
        for _ in range(count)
    ]


def brute(rows: list[tuple[Any, ...]], places: tuple[int, ...]) -> dict[Any, tuple[Any, ...]]:
    groups: dict[Any, list[tuple[Any, ...]]] = {}
    for row in rows:
        groups.setdefault(tuple(row[place] for place in places), []).append(row)
    found = {}
    for key, group in groups.items():
        who, amounts = ([row[place] for row in group if row[place] is not None] for place in (2, 3))
        found[key] = (len(group), len(who), len(set(who)), len(set(amounts)))
    return found


def test_sets_of_one_pass_equal_brute_force_and_do_not_mix_with_nulls(spark: Any) -> None:
    """A null of a row is a group of its set; a column that is not of the set is null, too, and another set's row."""
    rows, sets = skewed(), {"both": ("a", "b"), "by_b": ("b",), "by_a": ("a",), "all": ()}
    found: dict[str, dict[Any, tuple[Any, ...]]] = {name: {} for name in sets}
    frame = distributed_aggregator.aggregate_sets(spark.createDataFrame(rows, ROWS), sets, EXACT)
    for row in (one.asDict() for one in frame.collect()):
        columns = sets[row[SET]]
        assert {row[column] for column in ("a", "b") if column not in columns} <= {None}
        key = tuple(row[column] for column in columns)
        assert key not in found[row[SET]]
        found[row[SET]][key] = tuple(row[measure.name] for measure in EXACT)
    places = {"a": 0, "b": 1}
    assert found == {name: brute(rows, tuple(places[column] for column in columns)) for name, columns in sets.items()}
    assert (None,) in found["by_a"]


@pytest.mark.usefixtures("usual_plans")
def test_sets_read_the_rows_once_and_count_in_part_before_they_move(spark: Any) -> None:
    frame = spark.range(100).selectExpr("id % 3 AS a", "id % 5 AS b")
    sets = {"by_a": ("a",), "by_b": ("b",)}
    plan = plan_of(distributed_aggregator.aggregate_sets(frame, sets, (Measure(name="n"),)))
    assert [plan.count(step) for step in ("Range (", "Expand", "Exchange hashpartitioning")] == [1, 1, 1]
    assert "partial_count" in plan[plan.index("Exchange hashpartitioning") :]


def test_merged_sketches_count_a_value_once(spark: Any) -> None:
    frame = spark.range(30_000).selectExpr("concat('g', id % 3) AS a", "concat('u', id % 20000) AS who")
    measures = (Measure(name="seen", how=How.SKETCH, column="who"),)
    plain = distributed_aggregator.aggregate(frame, ("a",), measures)
    merged = plain.agg(F.hll_sketch_estimate(F.hll_union_agg("seen"))).collect()[0][0]
    assert abs(merged / 20_000 - 1) < 3 * ERROR
