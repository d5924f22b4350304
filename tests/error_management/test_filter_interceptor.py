"""Every filter says what it removed, in the pass that removes it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from patterns.core.errors import ConfigurationError
from patterns.error_management.filter_interceptor import Filter, first_match, jump


def numbers(spark: SparkSession) -> DataFrame:
    return spark.range(1000).withColumn("odd", F.when(F.col("id") % 7 != 0, F.col("id") % 2 == 1))


def filters() -> list[Filter]:
    return [
        Filter(name="small", removes=F.col("id") < 100),
        Filter(name="odd", removes=F.col("odd")),
        Filter(name="fives", removes=F.col("id") % 5 == 0),
    ]


def test_counts_equal_brute_force_and_the_first_match_wins(spark: SparkSession) -> None:
    expected = {"small": 0, "odd": 0, "fives": 0}
    for number in range(1000):
        if number < 100:
            expected["small"] += 1
        elif number % 7 and number % 2:
            expected["odd"] += 1
        elif number % 5 == 0:
            expected["fives"] += 1
    removed = numbers(spark).groupBy(first_match(filters()).alias("by")).count().collect()
    assert {row["by"]: row["count"] for row in removed} == {**expected, None: 1000 - sum(expected.values())}


def test_a_null_condition_keeps_the_row_that_a_where_not_would_lose(spark: SparkSession) -> None:
    frame = numbers(spark)
    kept = frame.where(first_match([Filter(name="odd", removes=F.col("odd"))]).isNull())
    assert kept.count() - frame.filter(~F.col("odd")).count() == len(range(0, 1000, 7))


def test_one_pass_without_cache_or_python_is_enough(spark: SparkSession) -> None:
    counted = numbers(spark).groupBy(first_match(filters())).count()
    plan = str(counted._explain_string("simple"))  # type: ignore[operator]
    assert plan.count("Range") == 1
    assert "Python" not in plan
    assert "InMemory" not in plan


@pytest.mark.parametrize("names", [[], ["a", "a"]])
def test_filters_without_names_of_their_own_are_refused(spark: SparkSession, names: list[str]) -> None:
    with pytest.raises(ConfigurationError, match="distinct names"):
        first_match([Filter(name=name, removes=F.lit(True)) for name in names])


def test_a_jump_against_history_is_seen() -> None:
    history = [{"crawler": 0.30 + wobble / 100} for wobble in (-2, -1, 0, 1, 2)]
    assert jump(history, {"crawler": 0.31})[0].jumped is False
    assert jump(history, {"crawler": 0.80})[0].jumped is True
    assert jump(history, {"crawler": 0.0})[0].jumped is True
    assert [(reading.name, reading.jumped) for reading in jump(history, {})] == [("crawler", True)]


def test_a_filter_that_is_new_is_judged_against_nothing_removed() -> None:
    gone, new = jump([{"a": 0.1}] * 5, {"b": 0.5})
    assert (gone.name, gone.share, gone.expected) == ("a", 0.0, 0.1)
    assert (new.name, new.expected, new.jumped) == ("b", 0.0, True)


def test_too_little_history_gives_no_judgement() -> None:
    assert jump([], {"a": 1.0})[0].expected is None
    assert jump([{"a": 0.0}] * 2, {"a": 1.0})[0].jumped is False


@given(st.floats(0, 1), st.integers(3, 30))
def test_a_steady_share_never_jumps(share: float, days: int) -> None:
    assert not jump([{"a": share}] * days, {"a": min(1.0, share + 0.03)})[0].jumped
