import re
from typing import Any

import pytest

from blogdata.contract.contract import Contract
from blogdata.errors import ConfigurationError
from blogdata.table.tables import partition_column
from plans import plan_of
from toy import declared

FILTERS = re.compile(r"PartitionFilters: \[(?P<filters>.*?)\](?=, (?:PushedFilters|ReadSchema|DataFilters))")


@pytest.fixture(scope="module")
def table(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Write four days of a hundred rows each, one folder a day."""
    path = str(tmp_path_factory.mktemp("lake") / "visits")
    rows = spark.range(400).selectExpr("concat('2026-01-0', 1 + id % 4) AS day", "id AS user")
    rows.repartition(1).write.format("delta").partitionBy("day").save(path)
    return path


def test_a_partition_predicate_becomes_a_partition_filter(spark: Any, table: str) -> None:
    plan = plan_of(spark.read.format("delta").load(table).where("day = '2026-01-02' and user > 10"))
    (filters,) = [match["filters"] for match in FILTERS.finditer(plan) if match["filters"].strip()]
    assert re.search(r"day#\d+ = 2026-01-02", filters)
    assert "user" not in filters


def hourly(days: int) -> Contract:
    return declared("silver.toys", "hour STRING", by="hour", retention_days=days)


def test_ten_years_of_hourly_partitions_are_refused() -> None:
    assert partition_column(hourly(3 * 365)) == "hour"
    with pytest.raises(ConfigurationError, match="87,600 partitions") as refused:
        partition_column(hourly(10 * 365))
    assert "coarser grain" in refused.value.next_step
