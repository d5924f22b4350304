"""A partition as it was found in the landing zone: its files, its flag, and what it lacks."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from blogdata.patterns.ingestion.landed_entries import Obstacle
from blogdata.patterns.ingestion.landed_links import StrayLink


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
class LandedFile:
    """A data file of a partition, or its flag.

    Args:
        mtime_ns: When it was last written, nanoseconds since 1970; a copier may preserve the time of the original.
        ctime_ns: When its content, its name or anything else about it was last changed here; nobody can set it.
    """

    name: str
    size: int
    mtime_ns: int
    ctime_ns: int

    @property
    def came_ns(self) -> int:
        """When it came into its folder with this content, at the latest, nanoseconds since 1970."""
        # A time of modification that is still to come was set by somebody whose clock is ahead.
        return self.ctime_ns if self.mtime_ns > time.time_ns() else max(self.mtime_ns, self.ctime_ns)


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
