"""A partition as it was found in the landing zone: its files, its flag, and what it lacks."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from blogdata.patterns.ingestion.landed_entries import LandedFile, Obstacle
from blogdata.patterns.ingestion.landed_links import StrayLink
from blogdata.publish.contract import Arrival


class Lack(str, Enum):
    """Why a partition is not complete."""

    FLAG = "flag"
    """The producer has not written the flag."""
    SUCCESSOR = "successor"
    """Convention (b): no later partition has data."""
    QUIET = "quiet"
    """Convention (b): a file came, or was changed, within the last minutes."""
    LINK = "link"
    """It contains, or is, a link that is not followed, such as one that leads out of the landing zone."""
    ENTRY = "entry"
    """It contains, or is, something that cannot be read, such as a folder without permission."""


@dataclass(frozen=True, kw_only=True)
class LandedPartition:
    """A partition as found in the landing zone.

    Args:
        key: `2026-01-31T05` or `2026-01-31`. Shorter if a refused entry stands in place of a day of hours
            (`2026-01-31`) or of the whole table (empty).
        files: Its data files, sorted by name, those in its folders too, without what is refused.
        fingerprint: Changes when a file is added, removed or rewritten, unless the rewrite preserves size and time.
    """

    key: str
    folder: Path
    lacks: Lack | None
    files: tuple[LandedFile, ...]
    links: tuple[StrayLink | Obstacle, ...]
    fingerprint: str
    flag: LandedFile | None

    @property
    def sizes(self) -> str:
        """Digest of the key, and of the files' names and sizes: a copy has the same, whatever its times."""
        return digest("\n".join([self.key, *(f"{file.name}\t{file.size}" for file in self.files)]))[:16]

    @property
    def changes(self) -> str:
        """Digest of the files' change times: it differs after a rewrite that preserves size and time, and a `chmod`."""
        return digest("\n".join(f"{file.name}\t{file.ctime_ns}" for file in self.files))[:16]

    @property
    def ready(self) -> bool:
        """Whether it is complete."""
        return self.lacks is None

    @property
    def empty(self) -> bool:
        """Whether it is complete but has no data file."""
        return self.ready and not self.files


def digest(text: str) -> str:
    """Return a digest of names of files, which need not be valid UTF-8, and of what is known of them."""
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:32]


def state_of(partition: Arrival) -> str:
    """Return what a publication records of the files of a partition."""
    return f"{partition.fingerprint}.{partition.sizes}.{partition.changes}"


def is_published(partition: Arrival, recorded: str | None) -> bool:
    """Return whether a publication was made from the files of a partition, by their names, sizes and times.

    Args:
        recorded: The state that was recorded; for a table that is written whole, after the key and a colon.
    """
    return _parsed(partition, recorded)[0] == partition.fingerprint


def is_stale(partition: Arrival, recorded: str | None) -> bool:
    """Return whether a publication was made from other files, by their names and sizes (not :func:`is_touched`)."""
    fingerprint, sizes, _ = _parsed(partition, recorded)
    return fingerprint != partition.fingerprint and sizes != partition.sizes


def is_touched(partition: LandedPartition, recorded: str | None) -> bool:
    """Return whether published files were changed or copied since, although their names and sizes are the same."""
    fingerprint, sizes, changes = _parsed(partition, recorded)
    return changes != partition.changes if fingerprint == partition.fingerprint else sizes == partition.sizes


def _parsed(partition: Arrival, recorded: str | None) -> list[str]:
    """Return fingerprint, sizes and changes; empty texts if nothing was recorded."""
    return [*(recorded or "").removeprefix(f"{partition.key}:").split("."), "", ""][:3]
