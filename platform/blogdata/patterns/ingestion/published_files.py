"""The landed files that a publication was made from, as it records them: three digests of their names, sizes and times.

Two states with the same names and sizes may have the same content or not, since a copy has other times, and a rewrite
may preserve them: see :mod:`blogdata.patterns.ingestion.landed_content`. Publications of earlier releases recorded no
sizes, or the fingerprint alone.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from blogdata.patterns.ingestion.landed_partition import LandedPartition
from blogdata.publish.contract import Arrival


class _Recorded(NamedTuple):
    fingerprint: str
    sizes: str
    changes: str


def state_of(partition: Arrival) -> str:
    """Return what a publication records of the files of a partition."""
    return f"{partition.fingerprint}.{partition.sizes}.{partition.changes}"


def is_published(partition: Arrival, recorded: str | None) -> bool:
    """Return whether a publication was made from the files of a partition, by their names, sizes and times.

    Args:
        recorded: The state that was recorded; for a table that is written whole, after the key and a colon.
    """
    return _parsed(partition, recorded).fingerprint == partition.fingerprint


def is_stale(partition: Arrival, recorded: str | None) -> bool:
    """Return whether a publication was made from other files, by their names and sizes; if only times differ, see
    :func:`is_touched`.
    """
    return not is_published(partition, recorded) and _parsed(partition, recorded).sizes != partition.sizes


def is_touched(partition: LandedPartition, recorded: str | None, published_at: datetime | None) -> bool:
    """Return whether published files were changed or copied since, although their names and sizes are the same."""
    seen = _parsed(partition, recorded)
    if seen.fingerprint != partition.fingerprint:
        return seen.sizes == partition.sizes
    if seen.changes:
        return seen.changes != partition.changes
    newest = max((file.ctime_ns for file in partition.files), default=0)
    return published_at is not None and newest > published_at.timestamp() * 1e9


def _parsed(partition: Arrival, recorded: str | None) -> _Recorded:
    fingerprint, *others = (recorded or "").removeprefix(f"{partition.key}:").split(".")
    return _Recorded(fingerprint, others[0] if len(others) > 1 else "", others[-1] if others else "")
