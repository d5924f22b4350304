"""Horizontal Partitioner: rows that are read together lie together, and a query opens only their folders.

Problem: a report on one day reads two years of files, and a job that rewrites one hour competes with all
the others.

How it works: a table has one partition column of low cardinality, a time or a business key; a predicate on
it prunes whole folders before a file is opened, and two writers of different partitions never conflict.
:func:`partition_column` and, for a business key, :func:`check_key` refuse a key before the table is made of it;
:func:`pruned_partitions` reads from Spark's plan whether a query is pruned at all.

The trap: a key with many values (a user, a second) makes one small file per value: planning takes longer
than reading. And a predicate on an expression of the column (`substr(day, 1, 7)`) may read right and prune
nothing.

When not to use it: for columns with many values; Sorter and Bucket serve those, and file statistics
(Metadata Enhancer) skip within a partition.

Source: Data Engineering Design Patterns, ch. 8.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from patterns.core.contract import Contract
from patterns.core.errors import PlatformError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MAX_VALUES = 10_000
"""Values a partition key may have by default."""
MAX_KEPT = 30_000
"""Partitions a table bears within its retention: three years by the hour are 26,280."""

_FILTERS = re.compile(r"PartitionFilters: \[(?P<filters>.*?)\](?=, (?:PushedFilters|ReadSchema|DataFilters))")
_ATTRIBUTE = re.compile(r"(?<=\w)#\d+L?")


class PartitionKeyRefused(PlatformError):
    """A column would make too many, or too small, partitions."""


@dataclass(frozen=True, kw_only=True)
class KeyReading:
    """What a partition key would make of some rows.

    Args:
        values: Distinct values; one partition each, null included.
        rows: Rows in all.
        largest: Rows of the largest partition.
    """

    values: int
    rows: int
    largest: int


def partition_column(contract: Contract) -> str | None:
    """Give the column a dataset's table is partitioned by, if its partitions stay few enough.

    Args:
        contract: What is promised; its retention and grain tell how many partitions the table will have.

    Returns:
        The column; None for a table that is written whole.

    Raises:
        PartitionKeyRefused: There would be more than :data:`MAX_KEPT` partitions.
    """
    if contract.partitioning is None:
        return None
    kept = timedelta(days=contract.retention_days) // contract.partitioning.grain.length
    if kept > MAX_KEPT:
        raise PartitionKeyRefused(
            what=f"{contract.retention_days} days by the {contract.partitioning.grain.value} are {kept:,} partitions; "
            f"a table bears {MAX_KEPT:,}",
            where=f"{contract.dataset}, column {contract.partitioning.column}",
            next_step="partition by a coarser grain, or keep the dataset for less time",
        )
    return contract.partitioning.column


def check_key(
    rows: DataFrame | Mapping[str, int], column: str, max_values: int = MAX_VALUES, *, min_rows: int = 1
) -> KeyReading:
    """Look at a partition key before a table is made of it.

    Args:
        rows: A representative frame, or rows by value of the column.
        column: The column.
        max_values: Partitions the table may have.
        min_rows: Rows a partition must have on average, so that files are worth opening.

    Returns:
        The reading.

    Raises:
        PartitionKeyRefused: Too many values, or too few rows per value.
    """
    counts = list(rows.values()) if isinstance(rows, Mapping) else _counts(rows, column, max_values)
    reading = KeyReading(values=len(counts), rows=sum(counts), largest=max(counts, default=0))
    if reading.values > max_values:
        raise PartitionKeyRefused(
            what=f"more than {max_values} partitions: '{column}' has too many values to partition by",
            where=column,
            next_step="partition by a coarser value (a day, not a second), or bucket or sort by this column",
        )
    if reading.values and reading.rows / reading.values < min_rows:
        raise PartitionKeyRefused(
            what=f"{reading.rows} rows in {reading.values} partitions are fewer than {min_rows} rows each",
            where=column,
            next_step="partition by a coarser value, so that a partition is worth a file",
        )
    return reading


def pruned_partitions(frame: DataFrame) -> tuple[str, ...]:
    """Give the partition filters Spark applies when it reads, from the physical plan.

    Args:
        frame: A query that was not run yet.

    Returns:
        One text per scan that prunes, without Spark's attribute numbers; empty when all partitions are read.
    """
    shown = io.StringIO()
    # The plan is only shown, not returned, by every kind of session.
    with redirect_stdout(shown):
        frame.explain()
    found = (match["filters"].strip() for match in _FILTERS.finditer(shown.getvalue()))
    return tuple(_ATTRIBUTE.sub("", text) for text in found if text)


def _counts(frame: DataFrame, column: str, max_values: int) -> list[int]:
    # One more than allowed is enough to refuse: a key of a million values is not brought here.
    return [int(row["count"]) for row in frame.groupBy(column).count().limit(max_values + 1).collect()]
