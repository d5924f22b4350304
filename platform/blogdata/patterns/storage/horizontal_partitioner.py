"""Horizontal Partitioner: rows that are read together are stored together, and a query opens only their folders.

Problem: a report on one day reads two years of files, and a job that rewrites one hour conflicts with all
the others.

How it works: a table has one partition column of low cardinality; a predicate on it prunes whole folders before a
file is opened, and two writers of different partitions never conflict. A key with too many values is refused before
anything is written: by the contract's retention and grain (:func:`partition_column`), and by the actual keys of a batch
(:func:`check_key`).

The trap: a key with many values (a user, a second) makes one small file per value: planning takes longer
than reading. And a predicate on an expression of the column (`substr(day, 1, 7)`) may return the right rows and still
prune nothing.

When not to use it: for columns with many values; Sorter and Bucket serve those, and file statistics
(Metadata Enhancer) skip within a partition.

Source: Data Engineering Design Patterns, ch. 8.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from blogdata.errors import PlatformError
from blogdata.publish.contract import Contract

MAX_KEPT = 30_000
"""Maximum number of partitions of a table within its retention: three years of hours are 26,280."""


class PartitionKeyRefused(PlatformError):
    """Raised when a partition column would produce too many partitions."""


def partition_column(contract: Contract) -> str | None:
    """Return the partition column of a dataset's table; refuse one that would produce too many partitions.

    Args:
        contract: Contract of the dataset; its retention and grain determine the number of partitions.

    Returns:
        Name of the column; None for an unpartitioned table.

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


def check_key(contract: Contract, keys: Sequence[str]) -> None:
    """Refuse a batch that has more partitions than a table can have.

    Args:
        contract: Contract of the dataset.
        keys: Partition keys of the batch; empty for an unpartitioned table.

    Raises:
        PartitionKeyRefused: There are more than :data:`MAX_KEPT` of them.
    """
    if len(keys) > MAX_KEPT:
        raise PartitionKeyRefused(
            what=f"one batch has {len(keys):,} partitions, from '{keys[0]}' to '{keys[-1]}'; "
            f"a table bears {MAX_KEPT:,}",
            where=f"{contract.dataset}, column {contract.partition_column}",
            next_step="partition by a coarser value (a day, not a second), or sort by this column instead",
        )
