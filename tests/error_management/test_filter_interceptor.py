"""Every filter counts its removed rows in the pass that removes them."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from blogdata.patterns.error_management.filter_interceptor import Filter, first_match


def numbers(spark: SparkSession) -> DataFrame:
    return spark.range(1000).withColumn("odd", F.when(F.col("id") % 7 != 0, F.col("id") % 2 == 1))


def filters() -> list[Filter]:
    return [
        Filter(name="small", removes=F.col("id") < 100),
        Filter(name="odd", removes=F.col("odd")),
        Filter(name="fives", removes=F.col("id") % 5 == 0),
    ]


def test_each_filter_counts_its_first_matches(spark: SparkSession) -> None:
    expected: dict[str | None, int] = {"small": 0, "odd": 0, "fives": 0}
    for number in range(1000):
        if number < 100:
            expected["small"] += 1
        elif number % 7 and number % 2:
            expected["odd"] += 1
        elif number % 5 == 0:
            expected["fives"] += 1
    removed = numbers(spark).groupBy(first_match(filters()).alias("by")).count().collect()
    assert {row["by"]: row["count"] for row in removed} == {**expected, None: 1000 - sum(expected.values())}


def test_a_null_condition_keeps_the_row(spark: SparkSession) -> None:
    frame = numbers(spark)
    kept = frame.where(first_match([Filter(name="odd", removes=F.col("odd"))]).isNull())
    assert kept.count() - frame.filter(~F.col("odd")).count() == len(range(0, 1000, 7))


def test_one_pass_without_cache_or_python_is_enough(spark: SparkSession) -> None:
    counted = numbers(spark).groupBy(first_match(filters())).count()
    plan = str(counted._explain_string("simple"))  # type: ignore[operator]
    assert plan.count("Range") == 1
    assert "Python" not in plan
    assert "InMemory" not in plan
