"""Columns are traced to their sources through Spark's own plans."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import functions as F

import toy
from blogdata.contract.publication import Commit
from blogdata.contract.schema import Column
from blogdata.patterns.idempotency.data_overwrite import overwrite_partitions
from blogdata.patterns.observability.fine_grained_tracker import sources
from blogdata.table.lake import Lake
from blogdata.table.target import Provenance

COPY = replace(
    toy.CONTRACT,
    dataset="gold.copies",
    columns=(*toy.CONTRACT.columns, Column(name="note", type="STRING", description="From nowhere")),
)


def publish(frame: Any, root: Path, run: str, contract: Any = toy.CONTRACT) -> Commit:
    return overwrite_partitions(frame, toy.target(root, run, contract=contract), toy.HOURS, Provenance())


def test_each_column_is_traced_to_its_source_columns(spark: Any, lake_root: Path) -> None:
    """A lineage by name would say that `stands_for` comes from `stands_for`."""
    lake = Lake(root=str(lake_root))
    publish(toy.clicks(spark), lake_root, "run-1")
    clicks = lake.read(spark, "silver.clicks")
    totals = clicks.groupBy("hour").agg(F.sum("stands_for").alias("total"))
    joined = clicks.join(totals, "hour").selectExpr(
        "hour", "click + total AS click", "click AS stands_for", "concat(page, click) AS page", "'x' AS note"
    )
    frame = joined.unionByName(joined.limit(0))
    columns = sources(lake, str(lake_root / "landing"), publish(frame, lake_root, "run-2", COPY))
    source = {name: {(origin.dataset, origin.column) for origin in origins} for name, origins in columns.items()}
    assert source["click"] == {("silver.clicks", "click"), ("silver.clicks", "stands_for")}
    assert source["stands_for"] == {("silver.clicks", "click")}
    assert source["page"] == {("silver.clicks", "page"), ("silver.clicks", "click")}
    assert not source.get("note")
