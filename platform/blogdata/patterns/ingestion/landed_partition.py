"""A partition as it was found in the landing zone: its files, its flag, and what it lacks.

Nothing in its folder is passed over: an entry is a data file, hidden (its name begins with `_` or `.`), or an obstacle
that holds the partition and is named. A producer such as Spark writes a folder `part.json/`: its files count, too.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from blogdata.errors import shown
from blogdata.landing.landed_links import Obstacle, stray
from blogdata.publish.contract import Arrival

DEEPEST = 8
"""How many folders deep the files of a partition may lie."""


@dataclass(frozen=True, kw_only=True)
class LandedFile:
    """A data file of a partition, or its flag.

    Args:
        mtime_ns: When it was last written, nanoseconds since 1970; a copier may preserve the time of the original.
        ctime_ns: When its content, its name or anything else about it was last changed here, so when it came; nobody
            can set it.
    """

    name: str
    size: int
    mtime_ns: int
    ctime_ns: int


def printable(name: str) -> str:
    """Return a name or path as it can be shown: bytes that are not UTF-8 and control characters are escaped."""
    return shown.line(os.fsencode(name).decode("utf-8", "backslashreplace"))


def is_data(name: str) -> bool:
    """Return whether an entry of that name may be data; all others are hidden."""
    return name[0] not in "_."


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def unreadable(path: str, error: OSError) -> Obstacle:
    return Obstacle(path=printable(path), why=f"may not be read: {error.strerror}")


def irregular(file: Path) -> Obstacle | None:
    """Return why an entry that is listed as a file must not be opened: it is a pipe, say; None if it may be."""
    is_one = file.is_file() or not file.exists()
    return None if is_one else Obstacle(path=printable(str(file)), why="is neither a file nor a folder")


def astray(folder: str, zone: str, prefixes: Sequence[str]) -> list[str]:
    """List the entries of a landed table that lie in no partition, by path: they are not read."""
    found = []
    # A folder that cannot be listed is an obstacle of its partitions.
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if not is_data(entry.name) or (entry.is_symlink() and stray(entry, zone)):
                continue
            if not entry.name.startswith(prefixes[0]) or not entry.is_dir():
                found.append(printable(entry.path))
            elif len(prefixes) > 1:
                found += astray(entry.path, zone, prefixes[1:])
    return sorted(found)


def walk(folder: str, zone: str, *, flag: str, above: tuple[str, ...] = ()) -> Iterator[LandedFile | Obstacle]:
    """List the entries of a partition's folder, which lies below some of its folders, `above`."""
    try:
        with os.scandir(folder) as listing:
            entries = [entry for entry in listing if is_data(entry.name) or (entry.name == flag and not above)]
    except FileNotFoundError:
        return
    except OSError as error:
        yield unreadable(folder, error)
        return
    for entry in entries:
        try:
            yield from _look(entry, above, zone, flag)
        except FileNotFoundError:
            continue
        except OSError as error:
            yield unreadable(entry.path, error)


def _look(entry: os.DirEntry[str], above: tuple[str, ...], zone: str, flag: str) -> Iterator[LandedFile | Obstacle]:
    # No row could name it: `source_file` is text.
    if not _is_utf8(entry.name):
        yield Obstacle(path=printable(entry.path), why="has a name that is not UTF-8")
    elif entry.is_symlink() and (link := stray(entry, zone)):
        yield link
    elif entry.name == flag or entry.is_file():
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
        yield from walk(entry.path, zone, flag=flag, above=(*above, entry.name))


class Lack(str, Enum):
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
        fingerprint: Changes when a file is added, removed or rewritten, unless the rewrite preserves size and time; a
            publication records it.
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

    @property
    def empty(self) -> bool:
        return self.ready and not self.files


def digest(text: str) -> str:
    """Return a digest of names of files, which need not be valid UTF-8, and of what is known of them."""
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:32]


def is_published(partition: Arrival, recorded: str | None) -> bool:
    """Return whether a publication was made from the files of a partition, by their names, sizes and times.

    What a table that is written whole has recorded begins with the key and a colon; in 0.1.0 a dot and more follow.
    """
    return (recorded or "").removeprefix(f"{partition.key}:").partition(".")[0] == partition.fingerprint
