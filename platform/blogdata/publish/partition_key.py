"""How many partitions a table may have: by its contract, and by the keys of a batch.

Pattern: Horizontal Partitioner (:mod:`blogdata.patterns.storage.horizontal_partitioner`).
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
    """Return the partition column of a dataset's table; refuse one that would produce too many partitions."""
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
    """Refuse a batch that has more partitions than a table can have."""
    if len(keys) > MAX_KEPT:
        raise PartitionKeyRefused(
            what=f"one batch has {len(keys):,} partitions, from '{keys[0]}' to '{keys[-1]}'; "
            f"a table bears {MAX_KEPT:,}",
            where=f"{contract.dataset}, column {contract.partition_column}",
            next_step="partition by a coarser value (a day, not a second), or sort by this column instead",
        )
