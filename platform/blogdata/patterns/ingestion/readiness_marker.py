"""Readiness Marker: a consumer starts when a partition is complete, never on half of it.

Problem: a folder with files does not show whether more will come.

How it works: either (a) the producer writes the flag `_SUCCESS` as its last step, or (b), for producers that write
no flag, by convention a partition is complete once a later one has data and it was not written to for :data:`QUIET`.
:func:`scan` derives both from the names, sizes and times of files alone, and computes a fingerprint for each partition.
The same fingerprint is the same delivery, so a consumer that stores it starts once. A copier may preserve the time of
modification, but not that of the last change (`ctime`), at which a file came.

The trap: nothing enforces the flag. Files that came after it, data whose flag never comes
(:func:`overdue`), a missing partition between others (:func:`gaps`) and a flag without data
(:attr:`LandedPartition.empty`) are detected here and have to be reported. Convention (b) never completes the newest
partition, and treats a skipped one as complete.

When not to use it: for a producer that appends all day, or one that can start the consumer itself (External
Trigger).

Source: Data Engineering Design Patterns, ch. 2.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from itertools import pairwise
from pathlib import Path
from typing import Literal

from blogdata.errors import ConfigurationError
from blogdata.landing.landed_links import Obstacle, stray
from blogdata.patterns.ingestion import landed_partition
from blogdata.patterns.ingestion.landed_partition import Lack, LandedFile, LandedPartition, digest, printable
from blogdata.patterns.ingestion.whole_files import write_whole
from blogdata.publish.partitions import Grain, between, following, key_of, start_of

FLAG = "_SUCCESS"
ENDED = "_ENDED"
"""File of a landing zone to which no more data come, such as a simulation: when they ended, as ISO 8601."""
Convention = Literal["flag", "next_exists"]
QUIET = timedelta(minutes=5)
"""Convention (b): time without a new or changed file after which a partition without a flag may be complete."""
LONGEST_GAP = timedelta(days=31)
"""A longer gap has no missing partitions: the producer was off, or the data after it are another producer's."""
_LONGEST_NOTE = 64
"""Characters that are read of the file :data:`ENDED`."""


@dataclass(frozen=True, kw_only=True)
class LandingZone:
    """A landing zone whose producers write flags, or none (`next_exists`); a flag counts under both conventions."""

    folder: Path
    convention: Convention = "flag"

    @classmethod
    def of(cls, landing: Path | LandingZone) -> LandingZone:
        """Return a landing zone unchanged; wrap a folder as one whose producers write flags."""
        return landing if isinstance(landing, LandingZone) else cls(folder=landing)

    def scan(self, table: str, grain: Grain, *, since: str = "") -> list[LandedPartition]:
        return scan(self.folder / table, grain, convention=self.convention, since=since)

    @property
    def ended_at(self) -> datetime | None:
        """When the data ended, by the file :data:`ENDED`; None without one, or if it has no time."""
        file = self.folder / ENDED
        try:
            # A producer might put a link there, or a pipe.
            if file.is_symlink() or not file.is_file():
                return None
            with file.open(encoding="utf-8") as note:
                end = datetime.fromisoformat(note.read(_LONGEST_NOTE).strip())
        except (OSError, ValueError):
            return None
        return end if end.tzinfo else end.replace(tzinfo=timezone.utc)

    def astray(self, table: str, grain: Grain) -> list[str]:
        prefixes = ("date=", "hour=") if grain is Grain.HOUR else ("date=",)
        return landed_partition.astray(os.fspath(self.folder / table), os.path.realpath(self.folder), prefixes)


def scan(
    table: Path,
    grain: Grain,
    *,
    convention: Convention = "flag",
    since: str = "",
    now: datetime | None = None,
) -> list[LandedPartition]:
    """Read all partitions of a landed table, in order.

    Args:
        table: Folder with date=YYYY-MM-DD folders, which contain hour=HH folders if the grain is HOUR; it lies in the
            landing zone.
        now: Current time, timezone-aware; None for the machine's clock.
    """
    zone = os.path.realpath(table.parent)
    found = [
        _refused(key, place) if isinstance(place, Obstacle) else _partition(key, place, zone)
        for key, place in _folders(table, grain, since, zone)
    ]
    return found if convention == "flag" else _apply_next_exists(found, grain, now or datetime.now(timezone.utc))


def mark(folder: Path) -> None:
    """Flag a folder as complete; an existing flag is rewritten, so that it is newer than all data."""
    write_whole(folder / FLAG, b"")


def overdue(
    partitions: Iterable[LandedPartition], grain: Grain, *, now: datetime, deadline: timedelta
) -> list[LandedPartition]:
    """Find the partitions that have data but are not complete after their deadline.

    Under convention (b), one that is still being written to is not included: it becomes complete by itself.
    """
    return [
        partition
        for partition in partitions
        if (partition.files or partition.links)
        and partition.lacks not in (None, Lack.QUIET)
        and _is_due(partition.key, grain, now, deadline)
    ]


def gaps(partitions: Sequence[LandedPartition], grain: Grain, *, now: datetime, deadline: timedelta) -> list[str]:
    """List the keys of the partitions missing between existing ones after their deadline.

    Without those in a gap longer than :data:`LONGEST_GAP`, and those that a refused link may contain.
    """
    there = [one.key for one in partitions if (one.files or one.links or one.ready) and start_of_key(one.key, grain)]
    hidden = tuple(one.key for one in partitions if one.links and not start_of_key(one.key, grain))
    absent: list[str] = []
    for before, after in pairwise(there):
        if start_of(after, grain) - start_of(before, grain) <= LONGEST_GAP + grain.length:
            absent += between(following(before, grain), after, grain)[:-1]
    return [key for key in absent if _is_due(key, grain, now, deadline) and not key.startswith(hidden)]


def start_of_key(key: str, grain: Grain) -> datetime | None:
    """Return the first instant of a landed partition; None if its key is not a time."""
    try:
        start = start_of(key, grain)
    except ConfigurationError:
        return None
    # `2026-01-05T3` can be parsed, but is not the name of a partition.
    return start if key_of(start, grain) == key else None


def late_files(partition: LandedPartition) -> tuple[LandedFile, ...]:
    flag = partition.flag
    return () if flag is None else tuple(file for file in partition.files if file.ctime_ns > flag.ctime_ns)


def _apply_next_exists(found: Sequence[LandedPartition], grain: Grain, now: datetime) -> list[LandedPartition]:
    # A partition in the future, such as one of the year 2099, does not count as a successor.
    times = [one.key for one in found if one.files and (start := start_of_key(one.key, grain)) and start <= now]
    last = max(times, default="")
    quiet_since = int((now - QUIET).timestamp() * 1e9)
    completed = []
    for partition in found:
        lacks = partition.lacks
        if lacks is Lack.FLAG and partition.key >= last:
            lacks = Lack.SUCCESSOR
        elif lacks is Lack.FLAG:
            came = max((file.ctime_ns for file in partition.files), default=0)
            lacks = Lack.QUIET if came > quiet_since else None
        completed.append(replace(partition, lacks=lacks))
    return completed


def _is_due(key: str, grain: Grain, now: datetime, deadline: timedelta) -> bool:
    start = start_of_key(key, grain)
    return start is not None and now > start + grain.length + deadline


_Place = str | Obstacle


def _folders(table: Path, grain: Grain, since: str, zone: str) -> Iterator[tuple[str, _Place]]:
    try:
        link = stray(table, zone) if table.is_symlink() else None
    except OSError as error:
        yield "", landed_partition.unreadable(os.fspath(table), error)
        return
    if link is not None:
        yield "", link
        return
    for day, folder in _children(os.fspath(table), "date=", zone):
        if day < since[: min(len(day), 10)]:
            continue
        if grain is not Grain.HOUR or not isinstance(folder, str):
            yield day, folder
        else:
            hours = ((f"{day}T{hour}" if hour else day, place) for hour, place in _children(folder, "hour=", zone))
            yield from ((key, place) for key, place in hours if key >= since[: len(key)])


def _children(folder: str, prefix: str, zone: str) -> Sequence[tuple[str, _Place]]:
    found: list[tuple[str, _Place]] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if not entry.name.startswith(prefix):
                    continue
                link = stray(entry, zone) if entry.is_symlink() else None
                if link is not None or entry.is_dir():
                    found.append((printable(entry.name[len(prefix) :]), link or entry.path))
    except FileNotFoundError:
        return []
    except OSError as error:
        return [("", landed_partition.unreadable(folder, error))]
    return sorted(found, key=lambda child: child[0])


def _refused(key: str, entry: Obstacle) -> LandedPartition:
    return LandedPartition(
        key=key,
        folder=Path(entry.path),
        lacks=Lack.LINK if entry.is_link else Lack.ENTRY,
        files=(),
        links=(entry,),
        fingerprint=digest(str(entry)),
        flag=None,
    )


def _partition(key: str, folder: str, zone: str) -> LandedPartition:
    files: list[LandedFile] = []
    links: list[Obstacle] = []
    flag = None
    for entry in landed_partition.walk(folder, zone, flag=FLAG):
        if isinstance(entry, Obstacle):
            links.append(entry)
        elif entry.name == FLAG:
            flag = entry
        else:
            files.append(entry)
    files.sort(key=lambda file: file.name)
    links.sort(key=lambda link: link.path)
    known = [f"{file.name}\t{file.size}\t{file.mtime_ns}" for file in files] + [str(link) for link in links]
    return LandedPartition(
        key=key,
        folder=Path(folder),
        lacks=_lack(links, flag),
        files=tuple(files),
        links=tuple(links),
        fingerprint=digest("\n".join(known)),
        flag=flag,
    )


def _lack(refused: Sequence[Obstacle], flag: LandedFile | None) -> Lack | None:
    if refused:
        return Lack.LINK if any(entry.is_link for entry in refused) else Lack.ENTRY
    return Lack.FLAG if flag is None else None
