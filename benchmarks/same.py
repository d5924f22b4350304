"""Checks that two lakes have the same rows: a comparison of times is void if the results differ."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

LAYERS = ("bronze", "silver", "gold")
KEYED = {
    "gold.visits_weekly": {"visit_id", "user_bucket"},
    "silver.identities": {"identity", "login", "email"},
    "silver.users": {"identity"},
    "silver.users_current": {"identity"},
}
"""Columns by dataset that need the deployment's key."""
LEFT_OUT = "gold.daily_report"
"""A few rows of figures of other tables, which only the platform computes."""
SKETCH = "visitors"
"""The column of sketches, where it is binary; elsewhere it is a number."""


class ResultsDiffer(Exception):
    """The peers computed different rows."""


def require(spark: SparkSession, ours: Path, other: Path) -> dict[str, int]:
    """Compare every table of a lake with that of another, except what needs a key; return the rows of each.

    Bytes of a sketch depend on the order of its rows, so two are the same if they estimate the same.

    Raises:
        ResultsDiffer: A table differs.
    """
    rows = {}
    datasets = {".".join(log.parts[-3:-1]) for layer in LAYERS for log in ours.glob(f"{layer}/*/_delta_log")}
    for dataset in sorted(datasets - {LEFT_OUT}):
        tables = [read(spark, lake, dataset) for lake in (ours, other)]
        columns = [_compared(*of) for of in tables[0].dtypes if of[0] not in KEYED.get(dataset, ())]
        chosen = [table.selectExpr(*columns) for table in tables]
        rows[dataset] = require_equal(*chosen, where=f"{dataset} in {ours} and {other}")
    return rows


def read(spark: SparkSession, lake: Path, dataset: str) -> DataFrame:
    return spark.read.format("delta").load(str(lake.joinpath(*dataset.split("."))))


def _compared(name: str, kind: str) -> str:
    # Only a merged sketch estimates by what it holds alone: one that was never merged remembers the order of its rows.
    sketch = f"hll_sketch_estimate(hll_union({name}, {name})) AS {name}"
    return sketch if (name, kind) == (SKETCH, "binary") else f"`{name}`"


def require_equal(ours: DataFrame, other: DataFrame, *, where: str) -> int:
    """Compare number and sum of the rows' 64-bit hashes, whatever their order; return the number of rows.

    Raises:
        ResultsDiffer: The tables differ.
    """
    digests = [_digest(table) for table in (ours, other)]
    if digests[0] != digests[1]:
        raise ResultsDiffer(f"{where}: number of rows and sum of their hashes are {digests[0]} and {digests[1]}")
    return digests[0][0]


def _digest(table: DataFrame) -> tuple[int, int]:
    hashed = table.select(F.xxhash64(*table.columns).cast("decimal(38,0)").alias("hash"))
    rows, total = hashed.agg(F.count(F.lit(1)), F.coalesce(F.sum("hash"), F.lit(0))).collect()[0]
    return int(rows), int(total)
