"""Metadata Decorator: the technical context of data is kept with it, and out of its consumers' sight.

Problem: a figure is wrong, and the engineer needs the run, the code and the attempt that wrote it; the
analyst who reads the table next to it needs none of these columns, and builds a report on one of them.

How it works: the writer puts the run, job, code version, trigger and attempt into the commit of every
publication; nothing is repeated on each row. :func:`context_table` joins to any dataset by dataset and
partition, because a partition is published whole. :func:`consumer_view` hides what is personal or
technical.

The trap: context in columns is wide, repeated a million times, and becomes an interface the moment it is
visible. Context in the commit alone is lost with the log's retention: the event log keeps it.

When not to use it: where consumers need the context row by row, as with rows of several runs in one
partition; then a Wrapper puts it beside the row.

Source: Data Engineering Design Patterns, ch. 5.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow.dataset as ds

from patterns.core.contract import Classification, Contract
from patterns.core.errors import ConfigurationError
from patterns.core.events import EVENTS, PUBLICATION, EventLog
from patterns.core.lake import Lake

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TECHNICAL = frozenset(
    "raw source_file source_offset arrival_hour load_date format reasons occurrences conflicts batch".split()
)
"""Columns that say how a row came to be, not what happened."""


@dataclass(frozen=True, kw_only=True)
class Decoration:
    """Which execution published a partition.

    Args:
        dataset: Name as `layer.table`.
        partition: Partition key; "" for a table that is written whole.
        table_version: Version of the table the publication made.
        run_id: Identifier of the run.
        job: Name of the job.
        code_version: Digest of the code that computed it.
        trigger: What started the run.
        attempt: 1 for the first try of the step.
        published_at: When the publication was recorded, UTC.
    """

    dataset: str
    partition: str
    table_version: int
    run_id: str
    job: str
    code_version: str
    trigger: str
    attempt: int
    published_at: datetime


def provenance(lake: Lake, dataset: str, partition: str) -> Decoration | None:
    """Give the execution that published what a partition holds now, without a JVM.

    Args:
        lake: The tables' root.
        dataset: Name as `layer.table`.
        partition: Partition key; "" for a table that is written whole.

    Returns:
        The newest publication's context; None when nothing is published there.
    """
    EventLog(lake).reconcile([dataset])
    table = lake.table(EVENTS)
    if table is None:
        return None
    wanted = (ds.field("dataset") == dataset) & (ds.field("partition") == partition)
    wanted &= ds.field("kind") == PUBLICATION
    rows = table.to_pyarrow_dataset().to_table(filter=wanted).to_pylist()
    if not rows:
        return None
    newest = max(rows, key=lambda row: int(row["table_version"]))
    run = json.loads(newest["payload"])["run"]
    return Decoration(
        dataset=dataset,
        partition=partition,
        table_version=int(newest["table_version"]),
        run_id=run["run_id"],
        job=run["job"],
        code_version=run["code_version"],
        trigger=run["trigger"],
        attempt=int(run["attempt"]),
        published_at=newest["recorded_at"],
    )


def context_table(spark: SparkSession, lake: Lake, version: int | None = None) -> DataFrame:
    """Give the execution of every publication as a table that joins to any dataset by dataset and partition.

    Args:
        spark: The session.
        lake: The tables' root.
        version: Version of the event log; None is the newest.

    Returns:
        dataset STRING, partition STRING, table_version BIGINT, run_id STRING, code_version STRING,
        job STRING, trigger STRING, attempt INT, published_at TIMESTAMP, current BOOLEAN (true for the newest
        publication of a partition).

    Raises:
        DatasetMissing: Nothing has ever been published.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    run = {name: F.get_json_object("payload", f"$.run.{name}").alias(name) for name in ("job", "trigger")}
    newest = F.max("table_version").over(Window.partitionBy("dataset", "partition"))
    return (
        lake.read(spark, EVENTS, version)
        .where(F.col("kind") == PUBLICATION)
        .select(
            "dataset",
            "partition",
            "table_version",
            "run_id",
            "code_version",
            run["job"],
            run["trigger"],
            F.get_json_object("payload", "$.run.attempt").cast("int").alias("attempt"),
            F.col("recorded_at").alias("published_at"),
        )
        .withColumn("current", F.col("table_version") == newest)
    )


def consumer_view(frame: DataFrame, contract: Contract, technical: Collection[str] = TECHNICAL) -> DataFrame:
    """Hide the columns a consumer must not see (personal) or must not build on (technical).

    Args:
        frame: Rows of the dataset.
        contract: What is promised; a column that is not in it is hidden too.
        technical: Names of technical columns; key and partition columns stay, consumers need them.

    Returns:
        The frame with the columns that are left, in the order of the contract.

    Raises:
        ConfigurationError: Nothing is left.
    """
    kept = set(contract.key) | ({contract.partitioning.column} if contract.partitioning else set())
    there = set(frame.columns)
    shown = [
        column.name
        for column in contract.columns
        if column.name in there
        and column.classification is not Classification.PERSONAL
        and (column.name in kept or column.name not in technical)
    ]
    if not shown:
        raise ConfigurationError(
            what="every column of the dataset is personal or technical",
            where=contract.dataset,
            next_step="classify the columns a consumer may see, or do not offer a view of this dataset",
        )
    return frame.select(*[f"`{name}`" for name in shown])
