"""The landed files that a publication was made from, as it records them: their fingerprint and their change times.

Two states that differ in the change times alone may have the same content or not: see
:mod:`blogdata.patterns.ingestion.landed_content`. Publications of earlier releases recorded the fingerprint alone.
"""

from __future__ import annotations

from datetime import datetime

from blogdata.patterns.ingestion.readiness_marker import LandedPartition
from blogdata.publish.contract import Arrival


def state_of(partition: Arrival) -> str:
    """Return what a publication records of the files of a partition."""
    return f"{partition.fingerprint}.{partition.changes}"


def is_published(partition: Arrival, recorded: str | None) -> bool:
    """Return whether a publication was made from the files of a partition, by their names, sizes and times.

    Args:
        partition: The partition as it is now.
        recorded: The state that was recorded; for a table that is written whole, after the key and a colon.
    """
    return _state(partition, recorded)[0] == partition.fingerprint


def is_touched(partition: LandedPartition, recorded: str | None, published_at: datetime | None) -> bool:
    """Return whether published files were changed since, although their names, sizes and times are the same.

    Args:
        partition: The partition as it is now.
        recorded: As for :func:`is_published`.
        published_at: Time of the publication; it decides if no change times were recorded.
    """
    fingerprint, changes = _state(partition, recorded)
    if fingerprint != partition.fingerprint:
        return False
    if changes:
        return changes != partition.changes
    newest = max((file.ctime_ns for file in partition.files), default=0)
    return published_at is not None and newest > published_at.timestamp() * 1e9


def _state(partition: Arrival, recorded: str | None) -> tuple[str, str]:
    fingerprint, _, changes = (recorded or "").removeprefix(f"{partition.key}:").partition(".")
    return fingerprint, changes
