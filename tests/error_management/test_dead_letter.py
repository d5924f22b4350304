"""A bad row does not stop the others, no row disappears, and each keeps all of its reasons."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from blogdata.patterns.error_management import dead_letter
from blogdata.patterns.error_management.dead_letter import RejectRule, TooManyDeadLetters

ROWS = [("a", 1, "5"), ("b", -1, "5"), (None, -1, "x"), ("c", None, "7"), ("d", 2, None)]


def devices(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(ROWS, "name string, size int, text string")


def rules() -> list[RejectRule]:
    return [
        RejectRule(name="no_name", condition=F.col("name").isNull()),
        RejectRule(name="negative", condition=F.col("size") < 0),
        dead_letter.unreadable("unreadable", source=F.col("text"), result=F.col("text").try_cast("int")),
    ]


def judged(frame: DataFrame, given: list[RejectRule]) -> DataFrame:
    return frame.withColumn("reasons", dead_letter.reasons(given))


def rejected(frame: DataFrame, given: list[RejectRule]) -> int:
    return judged(frame, given).where(F.size("reasons") > 0).count()


def test_a_row_keeps_all_reasons_in_order(spark: SparkSession) -> None:
    found = judged(devices(spark), rules()).collect()
    assert [row["reasons"] for row in found] == [
        [],
        ["negative"],
        ["no_name", "negative", "unreadable"],
        [],
        [],
    ]


def test_a_naive_filter_loses_rows_with_null_conditions(spark: SparkSession) -> None:
    frame = devices(spark)
    bad = F.col("size") < 0
    assert frame.filter(bad).count() + frame.filter(~bad).count() == len(ROWS) - 1
    sizes = F.size("reasons")
    both = judged(frame, [RejectRule(name="negative", condition=bad)]).agg(
        F.count_if(sizes == 0), F.count_if(sizes > 0)
    )
    assert sum(both.first() or ()) == len(ROWS)


def test_try_cast_alone_cannot_tell_failure_from_absence(spark: SparkSession) -> None:
    read = devices(spark).withColumn("number", F.col("text").try_cast("int"))
    assert read.filter("number is null").count() == 2
    rule = dead_letter.unreadable("unreadable", source=F.col("text"), result=F.col("number"))
    assert rejected(read, [rule]) == 1


@pytest.mark.usefixtures("usual_plans")
def test_no_python_worker_is_needed(spark: SparkSession) -> None:
    plan = str(judged(devices(spark), rules())._explain_string("simple"))  # type: ignore[operator]
    assert "Python" not in plan
    assert "Exchange" not in plan


def test_a_share_over_the_bound_is_an_error() -> None:
    fault = dead_letter.error_above_share(
        rejected_rows=11,
        rows=100,
        max_share=0.1,
        dataset="bronze.visits",
        part="2026-01-31T05",
        selection="size(reasons) > 0",
        then="run it again",
    )
    assert isinstance(fault, TooManyDeadLetters)
    assert "11 of 100 rows" in str(fault)
    assert "FROM bronze.visits WHERE size(reasons) > 0 GROUP BY reasons" in fault.next_step
    assert fault.next_step.endswith("then run it again")


@pytest.mark.parametrize(
    ("hours", "selection"),
    [
        ({"T03": (100, 100), "T04": (7, 500)}, "hour = 'T03'"),
        ({"T00": (9, 9), "T01": (40, 40), "T02": (40, 40), "T03": (40, 40)}, "hour BETWEEN 'T01' AND 'T03'"),
        ({"T00": (40, 40), "T01": (40, 40), "T02": (1, 900), "T03": (40, 40)}, "hour IN ('T00', 'T01', 'T03')"),
    ],
)
def test_the_suggested_query_selects_the_judged_hours(hours: dict[str, tuple[int, int]], selection: str) -> None:
    fault = dead_letter.error_for_partition(
        "T03", hours, max_share=0.75, dataset="bronze.dead_letters", column="hour", then="go on"
    )
    assert fault is not None
    query = f"SELECT reasons, count(*) FROM bronze.dead_letters WHERE {selection} GROUP BY reasons"
    assert f'blogdata sql "{query}"; mend the producer' in fault.next_step
