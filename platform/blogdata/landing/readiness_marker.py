"""Readiness Marker: a consumer starts when a partition is complete, never on half of it.

Problem: a folder with files does not show whether more will come.
How it works: either (a) the producer writes the flag `_SUCCESS` as its last step, or (b), for producers that write no
flag, by convention a partition is complete once a later one has data and it was not written to for :data:`QUIET`.
:func:`scan` derives both from the names, sizes and times of files alone. A partition's fingerprint is that of its
delivery, so a consumer that stores it starts once. Each entry of a folder is a data file, hidden (its name begins with
`_` or `.`), or an obstacle that holds the partition and is named; files may lie in folders, such as Spark's
`part.json/`.
The trap: nothing enforces the flag. Files that came after it, data whose flag never comes (:func:`overdue`) and a
missing partition between others (:func:`gaps`) are detected here and have to be reported. Convention (b) never
completes the newest partition, and treats a skipped one as complete.
When not to use it: for a producer that appends all day, or one that can start the consumer itself (External Trigger).
Source: Data Engineering Design Patterns, ch. 2.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from enum import Enum
from itertools import pairwise
from pathlib import Path
from typing import Literal

from blogdata.contract.contract import Arrival
from blogdata.contract.partitions import Grain, between, following, key_of, start_of
from blogdata.errors import ConfigurationError, shown
from blogdata.files import write_whole
from blogdata.landing.landed_links import Obstacle, stray

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
DEEPEST = 8
"""How many folders deep the files of a partition may lie."""


@dataclass(frozen=True, kw_only=True)
class LandedFile:
    """A data file of a partition, or its flag.

    `mtime_ns` may be that of the original, if a copier preserves it; `ctime_ns`, which nobody can set, is when it came.
    """

    name: str
    size: int
    mtime_ns: int
    ctime_ns: int


def printable(name: str) -> str:
    """Return a name or path as it can be shown: bytes that are not UTF-8 and control characters are escaped."""
    return shown.line(os.fsencode(name).decode("utf-8", "backslashreplace"))


def is_data(name: str) -> bool:
    """Return whether an entry of that name is data; all others are hidden."""
    return name[0] not in "_."


def unreadable(path: str, error: OSError) -> Obstacle:
    return Obstacle(path=printable(path), why=f"may not be read: {error.strerror}")


def astray(folder: str, zone: str, prefixes: Sequence[str]) -> list[str]:
    """List the entries of a landed table that lie in no partition, by path: they are not read."""
    paths = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if not is_data(entry.name) or (entry.is_symlink() and stray(entry, zone)):
                continue
            if not entry.name.startswith(prefixes[0]) or not entry.is_dir():
                paths.append(printable(entry.path))
            elif len(prefixes) > 1:
                paths += astray(entry.path, zone, prefixes[1:])
    return sorted(paths)


def _walk(folder: str, zone: str, above: tuple[str, ...] = ()) -> Iterator[LandedFile | Obstacle]:
    """List the entries of a partition's folder, which lies below some of its folders, `above`."""
    try:
        with os.scandir(folder) as listing:
            entries = [entry for entry in listing if is_data(entry.name) or (entry.name == FLAG and not above)]
    except FileNotFoundError:
        return
    except OSError as error:
        yield unreadable(folder, error)
        return
    for entry in entries:
        try:
            entry.name.encode()
            yield from _look(entry, above, zone)
        except UnicodeEncodeError:
            # No row could name it: `source_file` is text.
            yield Obstacle(path=printable(entry.path), why="has a name that is not UTF-8")
        except FileNotFoundError:
            continue
        except OSError as error:
            yield unreadable(entry.path, error)


def _look(entry: os.DirEntry[str], above: tuple[str, ...], zone: str) -> Iterator[LandedFile | Obstacle]:
    if entry.is_symlink() and (link := stray(entry, zone)):
        yield link
    elif entry.name == FLAG or entry.is_file():
        # Of a link it is the state of its target.
        stat, name = entry.stat(), "/".join((*above, entry.name))
        yield LandedFile(name=name, size=stat.st_size, mtime_ns=stat.st_mtime_ns, ctime_ns=stat.st_ctime_ns)
    elif not entry.is_dir():
        yield Obstacle(path=entry.path, why="is neither a file nor a folder")
    elif entry.is_symlink():
        yield Obstacle(path=entry.path, why="is a link to a folder, which is not followed here")
    elif len(above) == DEEPEST:
        yield Obstacle(path=entry.path, why=f"lies more than {DEEPEST} folders deep")
    else:
        yield from _walk(entry.path, zone, (*above, entry.name))


class Lack(str, Enum):
    FLAG = "flag"
    """The producer has not written the flag."""
    SUCCESSOR = "successor"
    """Convention (b): no later partition has data."""
    QUIET = "quiet"
    """Convention (b): a file came, or was changed, within the last minutes."""
    ENTRY = "entry"
    """It contains, or is, an obstacle: what cannot be read, or a link that leads out of the landing zone."""


@dataclass(frozen=True, kw_only=True)
class LandedPartition:
    """A partition in the landing zone.

    The key, `2026-01-31T05` or `2026-01-31`, is shorter if an obstacle stands in place of all of a day or of the table.
    The fingerprint changes when a file is added, removed or rewritten, unless the rewrite preserves size and time.
    """

    key: str
    folder: Path
    lacks: Lack | None
    files: tuple[LandedFile, ...]
    links: tuple[Obstacle, ...]
    fingerprint: str
    flag: LandedFile | None

    @property
    def ready(self) -> bool:
        return self.lacks is None


def _digest(text: str) -> str:
    # Names of files need not be valid UTF-8.
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:32]


def is_published(partition: Arrival, recorded: str | None) -> bool:
    """Return whether a publication was made from these files; a whole table records the key and a colon before."""
    return (recorded or "").removeprefix(f"{partition.key}:") == partition.fingerprint


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
        return astray(os.fspath(self.folder / table), os.path.realpath(self.folder), prefixes)


def scan(
    table: Path, grain: Grain, *, convention: Convention = "flag", since: str = "", now: datetime | None = None
) -> list[LandedPartition]:
    """Read all partitions of a landed table, a folder of the landing zone, in order."""
    zone = os.path.realpath(table.parent)
    partitions = [_partition(key, place, zone) for key, place in _folders(table, grain, since, zone)]
    return (
        partitions if convention == "flag" else _apply_next_exists(partitions, grain, now or datetime.now(timezone.utc))
    )


def mark(folder: Path) -> None:
    """Flag a folder as complete; an existing flag is rewritten, so that it is newer than all data."""
    write_whole(folder / FLAG, b"")


def overdue(
    partitions: Iterable[LandedPartition], grain: Grain, *, now: datetime, deadline: timedelta
) -> list[LandedPartition]:
    """Find the partitions with data that are not complete after their deadline, without those still written to."""
    return [
        partition
        for partition in partitions
        if (partition.files or partition.links)
        and partition.lacks not in (None, Lack.QUIET)
        and _is_due(partition.key, grain, now, deadline)
    ]


def gaps(partitions: Sequence[LandedPartition], grain: Grain, *, now: datetime, deadline: timedelta) -> list[str]:
    """List the missing partitions between others, without those of a longer gap and those that a link may contain."""
    known = [partition for partition in partitions if partition.files or partition.links or partition.ready]
    keys = [partition.key for partition in known if start_of_key(partition.key, grain)]
    hidden = tuple(partition.key for partition in known if partition.links and not start_of_key(partition.key, grain))
    absent: list[str] = []
    for before, after in pairwise(keys):
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


def _apply_next_exists(partitions: Sequence[LandedPartition], grain: Grain, now: datetime) -> list[LandedPartition]:
    # A partition in the future, such as one of the year 2099, does not count as a successor.
    starts = {partition.key: start_of_key(partition.key, grain) for partition in partitions if partition.files}
    times = [key for key, start in starts.items() if start and start <= now]
    last = max(times, default="")
    quiet_since = int((now - QUIET).timestamp() * 1e9)
    completed = []
    for partition in partitions:
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


def _folders(table: Path, grain: Grain, since: str, zone: str) -> Iterator[tuple[str, str | Obstacle]]:
    try:
        link = stray(table, zone) if table.is_symlink() else None
    except OSError as error:
        yield "", unreadable(os.fspath(table), error)
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


def _children(folder: str, prefix: str, zone: str) -> Sequence[tuple[str, str | Obstacle]]:
    children: list[tuple[str, str | Obstacle]] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if not entry.name.startswith(prefix):
                    continue
                link = stray(entry, zone) if entry.is_symlink() else None
                if link is not None or entry.is_dir():
                    children.append((printable(entry.name[len(prefix) :]), link or entry.path))
    except FileNotFoundError:
        return []
    except OSError as error:
        return [("", unreadable(folder, error))]
    return sorted(children, key=lambda child: child[0])


def _partition(key: str, place: str | Obstacle, zone: str) -> LandedPartition:
    files: list[LandedFile] = []
    links: list[Obstacle] = []
    flag = None
    for entry in [place] if isinstance(place, Obstacle) else _walk(place, zone):
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
        folder=Path(place.path if isinstance(place, Obstacle) else place),
        lacks=Lack.ENTRY if links else Lack.FLAG if flag is None else None,
        files=tuple(files),
        links=tuple(links),
        fingerprint=_digest("\n".join(known)),
        flag=flag,
    )
