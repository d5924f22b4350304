"""Removes landed partitions whose rows have expired from the landing zone.

The folder of a partition gets a hidden name before its files are removed. So nobody reads half of it, and the next
removal finds and finishes what one that was cut off has left.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

from blogdata.patterns.ingestion.landed_partition import LandedPartition

_PREFIX = ".expired-"


def remove(partition: LandedPartition) -> None:
    """Remove the folder of a landed partition, and that of its day if nothing else is in it."""
    hidden = partition.folder.with_name(_PREFIX + partition.folder.name)
    partition.folder.rename(hidden)
    _remove(hidden)


def finish(table: Path) -> None:
    """Remove what an earlier removal has left."""
    for pattern in (f"{_PREFIX}*", f"date=*/{_PREFIX}*"):
        for hidden in sorted(table.glob(pattern)):
            _remove(hidden)


def _remove(hidden: Path) -> None:
    shutil.rmtree(hidden)
    # Other hours of the day, or files that nobody knows, keep it.
    with suppress(OSError):
        if hidden.parent.name.startswith("date="):
            hidden.parent.rmdir()
