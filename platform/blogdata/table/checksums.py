"""Finds files that differ from what was written: gone, of another size, or not as their checksum file says.

In a local lake Spark writes `.NAME.crc` beside each file, with a CRC-32 for every 512 bytes, and verifies it whenever
it reads. Here the same files are verified for readers without a JVM, which do not. What is written without a JVM has
none, nor has an object store, which keeps checksums of its own.
"""

from __future__ import annotations

import zlib
from functools import lru_cache, partial
from pathlib import Path
from urllib.parse import unquote, urlparse

from deltalake import DeltaTable

from blogdata.table.store_faults import data_file_damaged

_LENGTH = slice(4, 8)
"""Where a checksum file says how many bytes each checksum is of."""
_LONGEST = 1 << 16


def sums_of(file: Path) -> Path:
    return file.with_name(f".{file.name}.crc")


def mismatch(file: Path) -> str | None:
    """Compare every byte of a file with its checksums; None if they agree, or if it has none."""
    try:
        stored = sums_of(file).read_bytes()
    except FileNotFoundError:
        return None
    length, sums = int.from_bytes(stored[_LENGTH], "big"), b""
    if 0 < length <= _LONGEST:
        with file.open("rb") as stream:
            blocks = iter(partial(stream.read, length), b"")
            sums = b"".join(zlib.crc32(block).to_bytes(4, "big") for block in blocks)
    return None if stored == b"crc\0" + length.to_bytes(4, "big") + sums else f"it differs from {sums_of(file).name}"


def problem_of(file: Path, size: int, *, read: bool) -> str | None:
    """Compare a data file with what its commit says of it, and if it is to be read with its checksums."""
    if not file.exists():
        return "it is gone"
    stat = file.stat()
    if stat.st_size != size:
        return f"it has {stat.st_size} of {size} bytes"
    return _verified(file, stat.st_mtime_ns, stat.st_ctime_ns) if read else None


def require_whole(table: DeltaTable, where: str, rows: str | None = None) -> None:
    """Verify the data files that may have some rows (an SQL condition) before they are read without a JVM.

    A file is verified once in a process, and again when it has changed.
    """
    folder = local_folder(table)
    if folder is None:
        return
    # The addresses encode the table's folder, and not what is in it.
    encoded = urlparse(table.table_uri).path
    for uri in table.file_uris(file_pruning_predicate=rows):
        file = folder / uri.removeprefix("file://").removeprefix(encoded)
        # One that is gone is named by its reader.
        if file.exists() and (problem := problem_of(file, file.stat().st_size, read=True)):
            raise data_file_damaged(where, str(file), problem)


def local_folder(table: DeltaTable) -> Path | None:
    """Return the folder of a table; None if it is in an object store."""
    address = urlparse(table.table_uri)
    return Path(unquote(address.path)) if address.scheme in ("", "file") else None


def file_of(folder: Path, path: str) -> Path:
    return folder / unquote(path)


@lru_cache(maxsize=100_000)
def _verified(file: Path, modified: int, changed: int) -> str | None:
    return mismatch(file)
