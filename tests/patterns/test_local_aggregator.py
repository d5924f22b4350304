from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import functions as F

from blogdata.errors import PlatformError
from blogdata.patterns.data_value import distributed_aggregator, local_aggregator
from blogdata.patterns.data_value.distributed_aggregator import How, Measure
from blogdata.table.lake import Lake, Stored
from plans import plan_of

HOURS = tuple(f"2026-01-05T0{hour}" for hour in range(7))
DATASET = "silver.clicks"
MEASURES = (
    Measure(name="n"),
    Measure(name="people", how=How.DISTINCT, column="who"),
    Measure(name="seen", how=How.SKETCH, column="who"),
)
BY = ("hour", "page")
EXACT = (*BY, "n", "people")


def clicks(lake: Lake, hours: tuple[str, ...] = HOURS, *, by: list[str] | None = None, backwards: bool = False) -> None:
    """Write two files a partition; the first hour has most of the rows."""
    for half in (0, 1):
        rows = [
            (hour, f"/{row % 5}", f"u{row * 7 % 90}")
            for at, hour in enumerate(hours)
            for row in range(half, 2_000 if at == 0 else 200 * at, 2)
        ]
        rows = rows[::-1] if backwards else rows
        names = ("hour", "page", "who")
        table = pa.table({name: [row[at] for row in rows] for at, name in enumerate(names)})
        write_deltalake(lake.path(DATASET), table, mode="append", partition_by=["hour"] if by is None else by)


def stored(lake: Lake, version: int = 1, partitions: tuple[str, ...] = HOURS) -> Stored:
    return Stored(lake=lake, dataset=DATASET, version=version, partitions=partitions)


@pytest.fixture
def lake(lake_root: Path) -> Lake:
    return Lake(root=str(lake_root))


def result(frame: Any) -> list[Any]:
    rows = [tuple(row) for row in frame.collect()]
    assert len({row[:2] for row in rows}) == len(rows)
    return sorted(rows)


@pytest.mark.usefixtures("usual_plans")
def test_local_groups_are_the_distributed_ones(session: Any, lake: Lake) -> None:
    clicks(lake)
    session.conf.set("spark.sql.shuffle.partitions", "3")
    local = local_aggregator.aggregate(session, stored(lake), BY, MEASURES)
    everywhere = distributed_aggregator.aggregate(lake.read(session, DATASET, 1), BY, MEASURES)
    plan = plan_of(local)
    assert "Exchange" not in plan
    # One scan task reads whole partitions.
    assert plan.count("FileScan") == plan.count("Coalesce 1") == 3
    assert "Exchange hashpartitioning" in plan_of(everywhere)
    estimated = F.hll_sketch_estimate("seen")
    both = result(local.select("*", estimated))
    assert [(*row[:4], row[5]) for row in both] == result(everywhere.select(*EXACT, estimated))

    # The same rows in another order, in other tasks, produce identical bytes.
    session.conf.set("spark.sql.shuffle.partitions", "2")
    other, rows = Lake(root=f"{lake.root}/other"), [row[:5] for row in both]
    clicks(other, backwards=True)
    assert result(local_aggregator.aggregate(session, stored(other), BY, MEASURES)) == rows

    # Only the requested partitions are read, and missing ones have no rows.
    asked = stored(lake, partitions=(HOURS[3], "2031-01-01T00"))
    assert result(local_aggregator.aggregate(session, asked, BY, MEASURES)) == [
        row for row in rows if row[0] == HOURS[3]
    ]

    # A row that is exploded into several stays in its partition.
    all_of_them = F.struct(F.lit("all").alias("of"), F.lit("").alias("value"))
    pieces = F.inline(F.array(F.struct(F.lit("page").alias("of"), F.col("page").alias("value")), all_of_them))
    expanded = local_aggregator.aggregate(
        session, stored(lake), ("hour", "of", "value"), MEASURES[:1], computed=[pieces]
    )
    assert "Exchange" not in plan_of(expanded)
    assert {row["n"] for row in expanded.where("hour = '2026-01-05T00' AND of = 'all'").collect()} == {2_000}


@pytest.mark.parametrize(
    ("partitioned", "by", "said"),
    [
        ([], BY, "partitioned by nothing"),
        (["page"], ("hour", "who"), "partitioned by page, and the groups are by hour, who"),
        (["hour", "page"], BY, "partitioned by hour, page"),
        (["hour"], ("day", "page"), "partitioned by hour, and the groups are by day, page"),
    ],
)
def test_rows_that_lie_apart_are_refused(
    spark: Any, lake: Lake, partitioned: list[str], by: tuple[str, ...], said: str
) -> None:
    clicks(lake, by=partitioned)
    day = F.substring("hour", 1, 10).alias("day")
    with pytest.raises(PlatformError, match=said) as refused:
        local_aggregator.aggregate(spark, stored(lake), by, MEASURES, computed=[day])
    assert "Distributed Aggregator" in refused.value.next_step
