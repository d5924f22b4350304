"""Readiness Marker: a consumer starts when a partition is complete, never on half of it.

Problem: a folder that has files says nothing about whether more will come.

How it works: either (a) the producer writes the flag `_SUCCESS` as its last step, or (b), for producers that write
none, by convention a partition is complete once a later one has data and it has been quiet since. :func:`scan` reads
both from the names, sizes and times of files alone, and gives each partition a fingerprint: the same fingerprint is the
same delivery, so a consumer that keeps it starts once.

The trap: the flag is a promise that nobody enforces. Files that come after it (:func:`late_files`), data
whose flag never comes (:func:`overdue`), a partition that never comes between others (:func:`gaps`) and a flag with no
data (:attr:`LandedPartition.empty`) are seen here and have to be reported; convention (b) never completes the newest
partition and takes a skipped one for complete.

When not to use it: for a producer that appends all day, or one that can start the consumer itself (External
Trigger).

Source: Data Engineering Design Patterns, ch. 2.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from enum import Enum
from itertools import pairwise
from pathlib import Path
from typing import Literal

from errors import ConfigurationError, PlatformError
from patterns.ingestion.landed_links import StrayLink, stray
from patterns.ingestion.whole_files import write_whole
from publish.partitions import Grain, between, following, key_of, start_of

FLAG = "_SUCCESS"
Convention = Literal["flag", "next_exists"]
QUIET = timedelta(minutes=5)
"""By convention (b): how long nothing may have been written to a partition without a flag."""
LONGEST_GAP = timedelta(days=31)
"""A longer gap has no missing partitions: the producer was off, or the data after it are somebody else's."""


class NothingToMark(PlatformError):
    """A folder without data is to be flagged as complete."""


class Lack(str, Enum):
    """What keeps a partition from being complete."""

    FLAG = "flag"
    """Its producer has not written the flag."""
    SUCCESSOR = "successor"
    """By convention (b): no later partition has data."""
    QUIET = "quiet"
    """By convention (b): it was written to a moment ago."""
    LINK = "link"
    """A link in it leads out of the landing zone."""


@dataclass(frozen=True, kw_only=True)
class LandingZone:
    """A landing zone, and what makes a partition of it complete.

    Args:
        folder: Where it is.
        convention: `flag`, or `next_exists` for producers that write no flag; a flag counts all the same.
    """

    folder: Path
    convention: Convention = "flag"

    @classmethod
    def of(cls, landing: Path | LandingZone) -> LandingZone:
        """Take a folder for a landing zone whose producers write flags."""
        return landing if isinstance(landing, LandingZone) else cls(folder=landing)

    def scan(self, table: str, grain: Grain, *, since: str = "") -> list[LandedPartition]:
        """Read all partitions of a landed table, as :func:`scan` does."""
        return scan(self.folder / table, grain, convention=self.convention, since=since)


@dataclass(frozen=True, kw_only=True)
class LandedFile:
    """A data file of a partition.

    Args:
        name: Its name in the partition's folder.
        size: Bytes.
        mtime_ns: When it was last written, nanoseconds since 1970.
    """

    name: str
    size: int
    mtime_ns: int


@dataclass(frozen=True, kw_only=True)
class LandedPartition:
    """A partition as it lies in the landing zone.

    Args:
        key: `2026-01-31T05` or `2026-01-31`; less of it, `2026-01-31` or nothing, when a link in the place of a day of
            hours, or of the whole table, is not followed.
        folder: Where it lies.
        lacks: What it lacks to be complete; None when it is.
        files: Its data files by name, without links that are not followed.
        links: Its links that are not followed.
        fingerprint: Changes when a file comes, goes or is written again.
        marked_at_ns: When its flag was written, nanoseconds since 1970; None without a flag.
    """

    key: str
    folder: Path
    lacks: Lack | None
    files: tuple[LandedFile, ...]
    links: tuple[StrayLink, ...]
    fingerprint: str
    marked_at_ns: int | None

    @property
    def ready(self) -> bool:
        """Whether it is complete."""
        return self.lacks is None

    @property
    def empty(self) -> bool:
        """Whether it is complete and yet holds no data file."""
        return self.ready and not self.files


def scan(
    table: Path,
    grain: Grain,
    *,
    convention: Convention = "flag",
    since: str = "",
    now: datetime | None = None,
) -> list[LandedPartition]:
    """Reads all partitions of a landed table, in order.

    Args:
        table: Folder that holds date=YYYY-MM-DD, and in them hour=HH for hours; it lies in the landing zone.
        grain: HOUR or DAY.
        convention: What makes a partition complete.
        since: First partition wanted; earlier ones are not looked at.
        now: The present, aware; the machine's clock when None.

    Returns:
        The partitions that exist; names that begin with `_` or `.` are no data.
    """
    zone = os.path.realpath(table.parent)
    found = [
        _refused(key, place) if isinstance(place, StrayLink) else _partition(key, place, zone)
        for key, place in _folders(table, grain, since, zone)
    ]
    return found if convention == "flag" else _succeeded(found, grain, now or datetime.now(timezone.utc))


def mark(folder: Path, *, allow_empty: bool = False) -> None:
    """Flags a folder as complete; a flag that is there is written again, later than everything else.

    Args:
        folder: The partition's folder.
        allow_empty: Whether no data at all is what there is to deliver.

    Raises:
        NothingToMark: The folder holds no data file and may not be empty.
    """
    if not allow_empty and not (folder.is_dir() and any(_is_data(path.name) for path in folder.iterdir())):
        raise NothingToMark(
            what="there is no data to be marked as complete",
            where=str(folder),
            next_step="write the data first, or say that an empty partition is meant (allow_empty)",
        )
    write_whole(folder / FLAG, b"")


def overdue(
    partitions: Iterable[LandedPartition], grain: Grain, *, now: datetime, deadline: timedelta
) -> list[LandedPartition]:
    """Find the partitions that hold data but are not complete although their time is up.

    One that is being written to by convention (b) is not among them: it becomes complete by itself.

    Args:
        partitions: As scanned; those whose key is no time are left out.
        grain: Their length.
        now: The present, aware.
        deadline: How long after its end a partition may stay incomplete.
    """
    return [
        partition
        for partition in partitions
        if (partition.files or partition.links)
        and partition.lacks not in (None, Lack.QUIET)
        and _is_due(partition.key, grain, now, deadline)
    ]


def gaps(partitions: Sequence[LandedPartition], grain: Grain, *, now: datetime, deadline: timedelta) -> list[str]:
    """List the partitions that never came, though earlier and later ones did, and whose time is up.

    Args:
        partitions: As scanned; those whose key is no time are left out.
        grain: Their length.
        now: The present, aware.
        deadline: How long after its end a partition may be absent.

    Returns:
        Their keys; none of a gap that is longer than :data:`LONGEST_GAP`, or that a refused link may hold.
    """
    there = [one.key for one in partitions if (one.files or one.links or one.ready) and begins(one.key, grain)]
    hidden = tuple(one.key for one in partitions if one.links and not begins(one.key, grain))
    absent: list[str] = []
    for before, after in pairwise(there):
        if start_of(after, grain) - start_of(before, grain) <= LONGEST_GAP + grain.length:
            absent += between(following(before, grain), after, grain)[:-1]
    return [key for key in absent if _is_due(key, grain, now, deadline) and not key.startswith(hidden)]


def begins(key: str, grain: Grain) -> datetime | None:
    """Give the first instant of a landed partition; None when its key is no time."""
    try:
        start = start_of(key, grain)
    except ConfigurationError:
        return None
    # `2026-01-05T3` can be read, and is the name of no partition.
    return start if key_of(start, grain) == key else None


def late_files(partition: LandedPartition) -> tuple[LandedFile, ...]:
    """Files that were written after the partition was flagged."""
    at = partition.marked_at_ns
    return () if at is None else tuple(file for file in partition.files if file.mtime_ns > at)


def _succeeded(found: Sequence[LandedPartition], grain: Grain, now: datetime) -> list[LandedPartition]:
    """Complete what has no flag by convention (b)."""
    # A folder of the year 2099 is nobody's successor.
    times = [one.key for one in found if one.files and (start := begins(one.key, grain)) and start <= now]
    last = max(times, default="")
    quiet_since = int((now - QUIET).timestamp() * 1e9)
    completed = []
    for partition in found:
        lacks = partition.lacks
        if lacks is Lack.FLAG and partition.key >= last:
            lacks = Lack.SUCCESSOR
        elif lacks is Lack.FLAG:
            written = max((file.mtime_ns for file in partition.files), default=0)
            lacks = Lack.QUIET if written > quiet_since else None
        completed.append(replace(partition, lacks=lacks))
    return completed


def _is_due(key: str, grain: Grain, now: datetime, deadline: timedelta) -> bool:
    start = begins(key, grain)
    return start is not None and now > start + grain.length + deadline


def _folders(table: Path, grain: Grain, since: str, zone: str) -> Iterator[tuple[str, str | StrayLink]]:
    if table.is_symlink() and (link := stray(table, zone)):
        yield "", link
        return
    for day, folder in _children(os.fspath(table), "date=", zone):
        if day < since[:10]:
            continue
        if grain is not Grain.HOUR or isinstance(folder, StrayLink):
            yield day, folder
        else:
            hours = ((f"{day}T{hour}", place) for hour, place in _children(folder, "hour=", zone))
            yield from ((key, place) for key, place in hours if key >= since)


def _children(folder: str, prefix: str, zone: str) -> Sequence[tuple[str, str | StrayLink]]:
    found: list[tuple[str, str | StrayLink]] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if not entry.name.startswith(prefix):
                    continue
                link = stray(entry, zone) if entry.is_symlink() else None
                if link is not None or entry.is_dir():
                    found.append((entry.name[len(prefix) :], link or entry.path))
    except FileNotFoundError:
        return []
    return sorted(found, key=lambda child: child[0])


def _refused(key: str, link: StrayLink) -> LandedPartition:
    return LandedPartition(
        key=key,
        folder=Path(link.path),
        lacks=Lack.LINK,
        files=(),
        links=(link,),
        fingerprint=_digest(str(link)),
        marked_at_ns=None,
    )


def _partition(key: str, folder: str, zone: str) -> LandedPartition:
    files, links = [], []
    marked = None
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name != FLAG and not _is_data(entry.name):
                continue
            if entry.is_symlink() and (link := stray(entry, zone)):
                links.append(link)
            elif entry.name == FLAG:
                marked = entry.stat().st_mtime_ns
            elif entry.is_file():
                stat = entry.stat()
                files.append(LandedFile(name=entry.name, size=stat.st_size, mtime_ns=stat.st_mtime_ns))
    files.sort(key=lambda file: file.name)
    links.sort(key=lambda link: link.path)
    known = [f"{file.name}\t{file.size}\t{file.mtime_ns}" for file in files] + [str(link) for link in links]
    return LandedPartition(
        key=key,
        folder=Path(folder),
        lacks=Lack.LINK if links else Lack.FLAG if marked is None else None,
        files=tuple(files),
        links=tuple(links),
        fingerprint=_digest("\n".join(known)),
        marked_at_ns=marked,
    )


def _digest(text: str) -> str:
    # A name of a file need not be text.
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:32]


def _is_data(name: str) -> bool:
    return name[0] not in "_."
