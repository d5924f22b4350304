"""Dataset Materializer: the result of an expensive view is a table, which a refresh brings up to date.

Problem: a view joins and merges months of rows for everybody who opens it.
How it works: the contract of the table has the view (`view`), one statement over other datasets. :func:`evaluate`
computes it for a person who asks and for the table alike. Each publication records the version of the input that it
read. A refresh reads what changed since then from the change feed of the input (:func:`changes`): a partition that was
computed again with equal rows is no change, nor is a compaction. Only what depends on changed partitions is computed;
the rest is taken from the table. The removal of old files keeps what the refresh has still to read
(:func:`blogdata.runs.upkeep.held_versions`), for thirty days at most. If the feed does not reach back to that
version, or other code has computed the table, the whole view is computed, and the publication says why.
The trap: a table is as old as its refresh, and its rows do not tell: the lag detector says how many versions behind its
input it is. A copy also needs the protection of its source: its sketches are personal as those it is merged from.
When not to use it: for a view that is cheap, or asked for less often than its input changes.
Source: Data Engineering Design Patterns, ch. 8.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from blogdata.contract.publication import Entry
from blogdata.table.lake import Lake

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

VIEW = "_view"
"""Suffix of the name of a materialized dataset's view, in SQL of `blogdata sql`."""
_DATASET = re.compile(r"\b(?:bronze|silver|gold)\.[a-z0-9_]+\b")
_NOT_IN_THE_FEED = (
    "DELTA_MISSING_CHANGE_DATA",
    "DELTA_CHANGE_DATA_FILE_NOT_FOUND",
    "DELTA_LOG_FILE_NOT_FOUND",
    "FILE_NOT_EXIST",
)
"""What Delta says of a feed that was off, or that lacks a commit or a file."""
_AFTER = ("insert", "update_postimage")


@dataclass(frozen=True, kw_only=True)
class Followed:
    dataset: str
    partition: str
    columns: tuple[str, ...]
    where: str


def evaluate(spark: SparkSession, view: str, inputs: Mapping[str, DataFrame]) -> DataFrame:
    query = _DATASET.sub(lambda match: f"{{{_name(match[0])}}}", view)
    frames: dict[str, Any] = {_name(dataset): frame for dataset, frame in inputs.items()}
    return spark.sql(query, **frames)


def changes(
    spark: SparkSession, lake: Lake, followed: Followed, before: Entry | None, *, until: int, code_version: str
) -> tuple[frozenset[str] | None, str]:
    """Find the partitions of the input whose rows differ from what the table shows, and say why.

    None: the whole view is computed.
    """
    if before is None:
        return None, "the table is new"
    dataset, since = followed.dataset, before.inputs[followed.dataset]
    if before.code_version != code_version:
        return None, "other code has computed the table"
    created = datetime.fromtimestamp((lake.at(dataset, until).metadata().created_time or 0) / 1000, tz=timezone.utc)
    if since > until or created > (before.committed_at or datetime.now(timezone.utc)):
        return None, f"{dataset} is another table than the one that was read"
    changed = frozenset[str]() if since == until else _changed(spark, lake, followed, since, until)
    if changed is None:
        return None, f"the change feed of {dataset} does not reach back to version {since}"
    return changed, f"{len(changed)} partitions of {dataset} changed from version {since} to {until}"


def _changed(spark: SparkSession, lake: Lake, followed: Followed, since: int, until: int) -> frozenset[str] | None:
    """Read the partitions whose rows differ; None if the feed lacks a version, or a file of one."""
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as F

    versions = {"readChangeFeed": "true", "startingVersion": str(since + 1), "endingVersion": str(until)}
    feed = spark.read.format("delta").options(**versions).load(lake.path(followed.dataset)).where(followed.where)
    # What was removed and written again as it was adds up to nothing, also over several versions.
    times = F.sum(F.when(F.col("_change_type").isin(*_AFTER), 1).otherwise(-1))
    rows = feed.groupBy(followed.partition, *followed.columns).agg(times.alias("times")).where("times != 0")
    try:
        return frozenset(row[0] for row in rows.select(followed.partition).distinct().collect())
    except PySparkException as error:
        if any(sign in str(error) for sign in _NOT_IN_THE_FEED):
            return None
        raise


def _name(dataset: str) -> str:
    return dataset.replace(".", "__")
