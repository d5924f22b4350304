from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from patterns.core.contract import Column, Contract, Partitioning
from patterns.core.errors import ConfigurationError
from patterns.core.lake import DatasetMissing, Lake
from patterns.core.partitions import Grain
from patterns.storage import tables
from patterns.storage.metadata_enhancer import Between, Skipping, choose, properties, skipping

VISITS = Contract(
    dataset="silver.clicks",
    description="Clicks",
    owner="team:analytics",
    columns=(
        Column(name="day", type="STRING", nullable=False, description="Day"),
        Column(name="raw", type="BINARY", description="As received"),
        Column(name="at", type="TIMESTAMP", description="When"),
        Column(name="user", type="BIGINT", description="Visitor"),
        Column(name="page", type="STRING", description="Page"),
    ),
    partitioning=Partitioning(column="day", grain=Grain.DAY),
    statistics=("at", "user"),
)


def utc(hour: int, minute: int = 0) -> datetime:
    return datetime(2026, 1, 5, hour, minute, tzinfo=timezone.utc)


@pytest.fixture(scope="module")
def lake(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Ten files; each holds a hundred users and six minutes of its own, and every page."""
    lake = Lake(root=str(tmp_path_factory.mktemp("lake")))
    tables.ensure(spark, lake, VISITS)
    rows = spark.range(1000).selectExpr(
        "'2026-01-05' AS day",
        "cast('line' AS BINARY) AS raw",
        "timestamp'2026-01-05 00:00:00' + make_dt_interval(0, 0, 0, id * 3.6) AS at",
        "id AS user",
        "concat('/', id % 7) AS page",
    )
    rows.repartitionByRange(10, "user").write.format("delta").mode("append").save(lake.path(VISITS.dataset))
    return lake


def files_spark_reads(spark: Any, lake: Lake, predicate: str) -> int:
    return len(lake.read(spark, VISITS.dataset).where(predicate).inputFiles())


def test_a_selective_predicate_reads_fewer_files_than_there_are(spark: Any, lake: Lake) -> None:
    found = skipping(lake, VISITS.dataset, [Between.equals("user", 421)])
    assert found == Skipping(files=10, matching=1)
    assert found.skipped == 9
    assert files_spark_reads(spark, lake, "user = 421") == 1


def test_a_range_of_time_skips_what_spark_skips(spark: Any, lake: Lake) -> None:
    found = skipping(lake, VISITS.dataset, [Between(column="at", least=utc(0, 8), greatest=utc(0, 20))])
    spark_reads = files_spark_reads(
        spark, lake, "at >= timestamp'2026-01-05 00:08' AND at <= timestamp'2026-01-05 00:20'"
    )
    assert found.matching == spark_reads < 10


def test_conditions_that_all_must_hold_skip_more(lake: Lake) -> None:
    early = Between(column="at", greatest=utc(0, 10))
    late = Between(column="user", least=900)
    assert skipping(lake, VISITS.dataset, [early]).matching > 0
    assert skipping(lake, VISITS.dataset, [early, late]).matching == 0


def test_a_column_without_statistics_skips_nothing(spark: Any, lake: Lake) -> None:
    assert skipping(lake, VISITS.dataset, [Between.equals("page", "/nowhere")]).matching == 10
    assert files_spark_reads(spark, lake, "page = '/nowhere'") == 10


def test_statistics_of_a_spread_column_skip_nothing_before_the_rows_are_sorted(spark: Any, tmp_path: Path) -> None:
    spread = Lake(root=str(tmp_path))
    tables.ensure(spark, spread, VISITS)
    rows = spark.range(1000).selectExpr("'2026-01-05' AS day", "(id * 379) % 1000 AS user")
    rows.repartition(10).write.format("delta").mode("append").save(spread.path(VISITS.dataset))
    found = skipping(spread, VISITS.dataset, [Between.equals("user", 421)])
    assert found.matching == found.files > 1


def test_other_partitions_are_skipped_and_files_of_nulls_too(spark: Any, tmp_path: Path) -> None:
    nulls = Lake(root=str(tmp_path))
    tables.ensure(spark, nulls, VISITS)
    for day, user in (("2026-01-05", "1L"), ("2026-01-06", "cast(null AS BIGINT)")):
        row = spark.sql(f"SELECT '{day}' AS day, {user} AS user")
        row.write.format("delta").mode("append").save(nulls.path(VISITS.dataset))
    assert skipping(nulls, VISITS.dataset, [Between.equals("day", "2026-01-05")]).matching == 1
    assert skipping(nulls, VISITS.dataset, [Between(column="user", least=0)]).matching == 1


def test_a_dataset_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(DatasetMissing, match=r"silver\.clicks"):
        skipping(Lake(root=str(tmp_path)), VISITS.dataset, [])


def test_columns_are_chosen_by_how_often_they_are_asked_for() -> None:
    asked = ["user = 1", "user = 2 AND at > '2026-01-05'", "page = 'user'", "at < now()", "user IS NULL"]
    assert choose(VISITS, asked) == ("user", "at", "page")
    assert choose(VISITS, asked, limit=1) == ("user",)


def test_partition_and_binary_columns_are_never_chosen() -> None:
    assert choose(VISITS, ["day = '2026-01-05' AND raw = x'00' AND page = '/'"]) == ("page",)


def test_predicates_without_a_useful_column_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="no predicate mentions"):
        choose(VISITS, ["day = '2026-01-05'", "nobody = 'user'"])


def test_a_contract_that_asks_for_statistics_of_what_has_no_order_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="cannot have statistics: nothing") as refused:
        properties(replace(VISITS, statistics=("nothing",)))
    assert "choose from" in refused.value.next_step
