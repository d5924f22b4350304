from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patterns.core.contract import Column, Contract, Partitioning
from patterns.core.partitions import Grain
from patterns.storage.horizontal_partitioner import (
    KeyReading,
    PartitionKeyRefused,
    check_key,
    partition_column,
    pruned_partitions,
)


@pytest.fixture(scope="module")
def table(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Four days of a hundred rows each, a folder a day."""
    path = str(tmp_path_factory.mktemp("lake") / "visits")
    rows = spark.range(400).selectExpr("concat('2026-01-0', 1 + id % 4) AS day", "id AS user")
    rows.repartition(1).write.format("delta").partitionBy("day").save(path)
    return path


def read(spark: Any, path: str) -> Any:
    return spark.read.format("delta").load(path)


def test_a_predicate_on_the_partition_column_is_a_partition_filter_of_the_plan(spark: Any, table: str) -> None:
    query = read(spark, table).where("day = '2026-01-02' and user > 10")
    (filters,) = pruned_partitions(query)
    assert "day = 2026-01-02" in filters
    assert "user" not in filters
    assert "#" not in filters


def test_a_pruned_query_opens_only_the_folder_it_asks_for(spark: Any, table: str) -> None:
    files = read(spark, table).where("day IN ('2026-01-02', '2026-01-03')").inputFiles()
    assert {Path(file).parent.name for file in files} == {"day=2026-01-02", "day=2026-01-03"}
    assert len(read(spark, table).inputFiles()) == 4


def test_a_predicate_on_another_column_prunes_nothing(spark: Any, table: str) -> None:
    assert pruned_partitions(read(spark, table).where("user = 7")) == ()


def test_a_predicate_that_mixes_both_columns_prunes_nothing_though_it_looks_like_it(spark: Any, table: str) -> None:
    query = read(spark, table).where("day = '2026-01-02' or user = 7")
    assert pruned_partitions(query) == ()


def test_every_scan_of_a_join_is_looked_at(spark: Any, table: str) -> None:
    one = read(spark, table).where("day = '2026-01-01'")
    other = read(spark, table).where("day = '2026-01-02'").selectExpr("user + 1 AS user")
    assert len(pruned_partitions(one.join(other, "user"))) == 2


def test_a_key_of_few_values_is_measured(spark: Any, table: str) -> None:
    assert check_key(read(spark, table), "day", 10) == KeyReading(values=4, rows=400, largest=100)


def test_a_key_of_many_values_is_refused_with_advice(spark: Any, table: str) -> None:
    with pytest.raises(PartitionKeyRefused, match="'user' has too many values") as refused:
        check_key(read(spark, table), "user", 100)
    assert "coarser" in refused.value.next_step


def test_a_key_that_makes_tiny_partitions_is_refused(spark: Any, table: str) -> None:
    with pytest.raises(PartitionKeyRefused, match="400 rows in 4 partitions"):
        check_key(read(spark, table), "day", 10, min_rows=1000)


def test_a_table_by_user_has_a_file_per_user(spark: Any, tmp_path: Path) -> None:
    rows = spark.range(60).selectExpr("id AS user", "'x' AS page").repartition(1)
    rows.write.format("delta").partitionBy("user").save(str(tmp_path / "by_user"))
    assert len(read(spark, str(tmp_path / "by_user")).inputFiles()) == 60


def test_null_is_a_partition_too(spark: Any) -> None:
    frame = spark.createDataFrame([("a",), (None,), (None,)], "day STRING")
    assert check_key(frame, "day", 2) == KeyReading(values=2, rows=3, largest=2)


@given(st.dictionaries(st.text(min_size=1), st.integers(1, 1000), max_size=20), st.integers(1, 20))
def test_counts_are_refused_exactly_when_there_are_more_than_allowed(counts: dict[str, int], limit: int) -> None:
    if len(counts) > limit:
        with pytest.raises(PartitionKeyRefused):
            check_key(counts, "key", limit)
    else:
        reading = check_key(counts, "key", limit)
        assert (reading.values, reading.rows) == (len(counts), sum(counts.values()))


def hourly(days: int) -> Contract:
    return Contract(
        dataset="silver.toys",
        description="Toys",
        owner="team:toys",
        columns=(Column(name="hour", type="STRING", description="Hour"),),
        partitioning=Partitioning(column="hour", grain=Grain.HOUR),
        retention_days=days,
    )


def test_a_table_kept_for_ten_years_by_the_hour_is_refused_before_it_is_made() -> None:
    assert partition_column(hourly(3 * 365)) == "hour"
    with pytest.raises(PartitionKeyRefused, match="87,600 partitions") as refused:
        partition_column(hourly(10 * 365))
    assert "coarser grain" in refused.value.next_step
