"""Readiness Marker: a consumer starts when a partition is complete, never on half of it.

Problem: a folder that has files says nothing about whether more will come.

How it works: either (a) the producer writes the flag `_SUCCESS` as its last step, or (b) by convention a
partition is complete once a later one exists. :func:`scan` reads both from the names and sizes of files
alone, and gives each partition a fingerprint: the same fingerprint is the same delivery, so a consumer that
keeps it starts once.

The trap: the flag is a promise that nobody enforces. Files that come after it (:func:`late_files`), data
whose flag never comes (:func:`overdue`) and a flag with no data (:attr:`LandedPartition.empty`) are seen
here and have to be reported; convention (b) never completes the newest partition and takes a skipped one
for complete.

When not to use it: for a producer that appends all day, or one that can start the consumer itself (External
Trigger).

Source: Data Engineering Design Patterns, ch. 2.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Literal

from patterns.core.errors import PlatformError
from patterns.core.partitions import Grain, start_of
from patterns.ingestion.whole_files import write_whole

FLAG = "_SUCCESS"
Convention = Literal["flag", "next_exists"]


class NothingToMark(PlatformError):
    """A folder without data is to be flagged as complete."""


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
        key: `2026-01-31T05` or `2026-01-31`.
        ready: Whether it is complete, by the convention asked for.
        files: Its data files by name.
        fingerprint: Changes when a file comes, goes or changes its size or, if asked for, its time.
        marked_at_ns: When its flag was written, nanoseconds since 1970; None without a flag.
    """

    key: str
    ready: bool
    files: tuple[LandedFile, ...]
    fingerprint: str
    marked_at_ns: int | None

    @property
    def marked_at(self) -> datetime | None:
        """When its flag was written (UTC)."""
        at = self.marked_at_ns
        return None if at is None else datetime.fromtimestamp(at / 1e9, timezone.utc)

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
    with_times: bool = False,
) -> list[LandedPartition]:
    """Reads all partitions of a landed table, in order.

    Args:
        table: Folder that holds date=YYYY-MM-DD, and in them hour=HH for hours.
        grain: HOUR or DAY.
        convention: What makes a partition complete.
        since: First partition wanted; earlier ones are not looked at.
        with_times: Whether a file that was written again with the same size counts as changed.

    Returns:
        The partitions that exist; names that begin with `_` or `.` are no data.
    """
    found = [_partition(key, folder, with_times) for key, folder in _folders(table, grain, since)]
    if convention == "flag":
        return found
    last = found[-1].key if found else ""
    return [_as_ready(partition, partition.key < last) for partition in found]


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
    """Partitions that hold data but are not complete although their time is up.

    Args:
        partitions: As scanned.
        grain: Their length.
        now: The present, aware.
        deadline: How long after its end a partition may stay incomplete.
    """
    return [
        partition
        for partition in partitions
        if partition.files and not partition.ready and now > start_of(partition.key, grain) + grain.length + deadline
    ]


def late_files(partition: LandedPartition) -> tuple[LandedFile, ...]:
    """Files that were written after the partition was flagged."""
    at = partition.marked_at_ns
    return () if at is None else tuple(file for file in partition.files if file.mtime_ns > at)


def _folders(table: Path, grain: Grain, since: str) -> Iterator[tuple[str, str]]:
    for day, folder in _children(os.fspath(table), "date="):
        if grain is Grain.HOUR and day >= since[:10]:
            hours = ((f"{day}T{hour}", path) for hour, path in _children(folder, "hour="))
            yield from ((key, path) for key, path in hours if key >= since)
        elif grain is not Grain.HOUR and day >= since:
            yield day, folder


def _children(folder: str, prefix: str) -> Sequence[tuple[str, str]]:
    try:
        with os.scandir(folder) as entries:
            names = [entry for entry in entries if entry.name.startswith(prefix) and entry.is_dir()]
    except FileNotFoundError:
        return []
    return sorted((entry.name[len(prefix) :], entry.path) for entry in names)


def _partition(key: str, folder: str, with_times: bool) -> LandedPartition:
    files = []
    marked = None
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name == FLAG:
                marked = entry.stat().st_mtime_ns
            elif _is_data(entry.name) and entry.is_file():
                stat = entry.stat()
                files.append(LandedFile(name=entry.name, size=stat.st_size, mtime_ns=stat.st_mtime_ns))
    files.sort(key=lambda file: file.name)
    known = "\n".join(f"{file.name}\t{file.size}\t{file.mtime_ns if with_times else ''}" for file in files)
    return LandedPartition(
        key=key,
        ready=marked is not None,
        files=tuple(files),
        fingerprint=hashlib.sha256(known.encode()).hexdigest()[:32],
        marked_at_ns=marked,
    )


def _as_ready(partition: LandedPartition, ready: bool) -> LandedPartition:
    return LandedPartition(
        key=partition.key,
        ready=ready,
        files=partition.files,
        fingerprint=partition.fingerprint,
        marked_at_ns=partition.marked_at_ns,
    )


def _is_data(name: str) -> bool:
    return name[0] not in "_."
