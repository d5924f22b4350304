"""Hadoop's checksum files, which show every flipped byte of a file in a local lake.

Spark writes `.NAME.crc` beside each file of a table and of its log, with a CRC-32 for every 512 bytes, and verifies it
whenever it reads them. Here the same files are verified without a JVM, and written for what is written without one.
An object store and HDFS keep checksums of their own, so their files have none of these.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import get_ident
from urllib.parse import unquote, urlparse

from deltalake import DeltaTable

from blogdata.lake.store_faults import data_file_damaged

GONE = "it is gone"
_MAGIC = b"crc\0"
_CHUNK = 512
_LONGEST = 1 << 16
_AT_ONCE = 8192
"""Chunks that are read at once."""
_NEWEST = 20
"""How many commits without checksums are looked for, which a process that died has left."""


@dataclass(frozen=True, kw_only=True)
class Mismatch:
    """A file that differs from its checksums."""

    file: Path
    problem: str
    sums: bool = False


def sums_of(file: Path) -> Path:
    """Return the path of a file's checksum file."""
    return file.with_name(f".{file.name}.crc")


def mismatch(file: Path) -> Mismatch | None:
    """Compare every byte of a file with its checksums.

    Returns:
        What differs; None if nothing does, or if the file has no checksum file.
    """
    sums = sums_of(file)
    try:
        stored = sums.read_bytes()
    except FileNotFoundError:
        return None
    length = struct.unpack(">i", stored[4:8])[0] if len(stored) >= 8 else 0
    garbled = Mismatch(file=sums, problem="it is garbled", sums=True)
    if stored[:4] != _MAGIC or not 0 < length <= _LONGEST or len(stored) % 4:
        return garbled
    kept, at = struct.unpack(f">{len(stored) // 4 - 2}I", stored[8:]), 0
    for found in _sums(file, length):
        if at == len(kept):
            return garbled if length != _CHUNK else Mismatch(file=file, problem="it is longer than it was written")
        if difference := found ^ kept[at]:
            # One flipped byte of the checksum itself. A flipped byte of the file changes all four of them, but for one
            # case in millions.
            if length != _CHUNK or any(difference & ~(0xFF << shift) == 0 for shift in (0, 8, 16, 24)):
                return garbled
            return Mismatch(file=file, problem=f"its bytes {at * length} to {(at + 1) * length - 1} are not as written")
        at += 1
    return None if at == len(kept) else Mismatch(file=file, problem="it is cut off")


def missing(file: Path, size: int) -> Mismatch | None:
    """Compare a file with its size, without reading it."""
    there = file.stat().st_size if file.exists() else None
    if there == size:
        return None
    return Mismatch(file=file, problem=GONE if there is None else f"it has {there} of {size} bytes")


def seal(file: Path) -> None:
    """Write the checksum file of a file that is whole; it replaces an earlier one at once."""
    sums = list(_sums(file, _CHUNK))
    made = sums_of(file).with_suffix(f".{os.getpid()}-{get_ident()}")
    made.write_bytes(_MAGIC + struct.pack(f">i{len(sums)}I", _CHUNK, *sums))
    made.replace(sums_of(file))


def seal_newest(table: DeltaTable) -> None:
    """Write the missing checksum files of a table's newest commits and of the data files that they add.

    A writer without a JVM calls it after each commit. If it dies before that, the next one makes up for it.
    """
    folder = local_folder(table)
    if folder is None:
        return
    # The commit is made: a disk that is full now, or a file that was removed meanwhile, is no fault of it.
    with suppress(OSError):
        for version in range(table.version(), max(-1, table.version() - _NEWEST), -1):
            commit = folder / "_delta_log" / f"{version:020}.json"
            if sums_of(commit).exists():
                return
            for file in added(folder, commit):
                if not sums_of(file).exists():
                    seal(file)
            # Last, so that it shows that all are done.
            seal(commit)


def require_whole(table: DeltaTable, where: str, rows: str | None = None) -> Sequence[str]:
    """Verify the data files of a table before they are read without a JVM: that reader does not.

    A file is verified once in a process, and again when it has changed.

    Args:
        rows: SQL condition of the rows that are read; files that cannot have any of them are not verified.

    Returns:
        The addresses of the files that may have such rows.

    Raises:
        DataFileDamaged: A data file differs from its checksums.
    """
    uris: Sequence[str] = table.file_uris(file_pruning_predicate=rows)
    folder = local_folder(table)
    if folder is None:
        return uris
    # The addresses encode the table's folder, and not what is in it.
    encoded = urlparse(table.table_uri).path
    for uri in uris:
        file = folder / uri.removeprefix("file://").removeprefix(encoded)
        if not file.exists():
            # Its reader names it.
            continue
        seen = file.stat()
        found = _verified(file, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)
        if found is not None and not found.sums:
            raise data_file_damaged(where, str(found.file), found.problem)
    return uris


def local_folder(table: DeltaTable) -> Path | None:
    """Return the folder of a table; None if it is in an object store."""
    address = urlparse(table.table_uri)
    return Path(unquote(address.path)) if address.scheme in ("", "file") else None


def file_of(folder: Path, path: str) -> Path:
    """Return a data file of a table, whose log has its path encoded."""
    return folder / unquote(path)


def added(folder: Path, commit: Path) -> Iterator[Path]:
    """Iterate over the data files that a commit of a table adds."""
    for line in commit.read_bytes().splitlines():
        action = json.loads(line)
        if "add" in action:
            yield file_of(folder, action["add"]["path"])


@lru_cache(maxsize=100_000)
def _verified(file: Path, size: int, modified: int, changed: int) -> Mismatch | None:
    return mismatch(file)


def _sums(file: Path, length: int) -> Iterator[int]:
    with file.open("rb") as stream:
        while block := stream.read(_AT_ONCE * length):
            view = memoryview(block)
            yield from (zlib.crc32(view[at : at + length]) for at in range(0, len(block), length))
