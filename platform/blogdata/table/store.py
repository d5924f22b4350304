"""Paths, logs and files of Delta tables, read and compacted without a JVM (delta-rs).

In a local lake Spark writes `.NAME.crc` beside each file, with a CRC-32 for every 512 bytes, and verifies it whenever
it reads; here readers without a JVM do. Files that are written without a JVM have none, nor has an object store.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, WriterProperties, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import FileType, PyFileSystem

from blogdata.errors import PlatformError
from blogdata.table.faults import DataFileDamaged, LogDamaged, typed_errors

ZSTD = WriterProperties(compression="ZSTD", compression_level=3)
"""How data files are written without a JVM: with the compression that Spark uses for the tables."""
_LENGTH = slice(4, 8)
"""Where a checksum file says how many bytes each checksum is of."""
_LONGEST = 1 << 16
ONCE = CommitProperties(max_commit_retries=0)
"""With retries of its own, delta-rs overwrites what the writer has never read."""


@dataclass(frozen=True, kw_only=True)
class Store:
    """A folder or bucket (absolute path or address) of Delta tables, `<root>/<layer>/<table>`."""

    root: str
    storage_options: Mapping[str, str] = field(default_factory=dict)

    def path(self, dataset: str) -> str:
        return f"{self.root}/{dataset.replace('.', '/', 1)}"

    def folder(self, dataset: str) -> Path | None:
        """Return the local folder of a table; None if the lake is in an object store."""
        path = self.path(dataset)
        return Path(plain(path)) if "://" not in path or path.startswith("file:") else None

    def table(self, dataset: str) -> DeltaTable | None:
        """Open a table's log at its newest version, without a JVM; None if the table does not exist."""
        options = dict(self.storage_options)
        if not DeltaTable.is_deltatable(self.path(dataset), storage_options=options):
            return None
        try:
            with typed_errors(dataset):
                return DeltaTable(self.path(dataset), storage_options=options)
        except TableNotFoundError:
            return None

    def at(self, table: str, version: int) -> DeltaTable:
        with typed_errors(table):
            return DeltaTable(self.path(table), version=version, storage_options=dict(self.storage_options))

    def commits(self, table: DeltaTable, after: int = -1) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """Read version and `commitInfo` of a table's commits, the newest first, as far back as its log goes.

        The version is in the file name of each commit; `DeltaTable.history` counts down from the opened version, so a
        commit made in between shifts all (https://github.com/delta-io/delta-rs/issues/4488).
        """
        store, folder = self.files(table.table_uri), local_folder(table)
        for version in range(table.version(), after, -1):
            file = f"_delta_log/{version:020d}.json"
            try:
                with typed_errors(table.table_uri), store.open_input_stream(file) as stream:
                    lines = stream.read().splitlines()
            except FileNotFoundError:
                return
            if folder is not None and mismatch(folder / file):
                raise LogDamaged(table.table_uri, file)
            try:
                actions = [json.loads(line) for line in lines if b'"commitInfo"' in line]
            except ValueError as error:
                raise LogDamaged(table.table_uri, file) from error
            yield from ((version, action["commitInfo"]) for action in actions if "commitInfo" in action)

    def is_whole(self, dataset: str, version: int) -> bool:
        """Check, without a JVM, whether a version can still be read: the log has it, and all of its files exist."""
        try:
            table = self.at(dataset, version)
            # Deletion vectors are not listed below. Their files are few and small, so reading them is the check.
            table.deletion_vectors()
        except (DeltaError, PlatformError):
            return False
        paths = [str(path) for path in table.get_add_actions(flatten=True).column("path").to_pylist()]
        infos = self.files(self.path(dataset)).get_file_info(paths) if paths else []
        return all(info.type != FileType.NotFound for info in infos)

    def put(
        self, name: str, rows: pa.Table, base: DeltaTable | None, *, commit: CommitProperties = ONCE, **how: Any
    ) -> bool:
        """Write a small table if it is still as `base` was opened (None: absent); False: another writer came first."""
        try:
            with typed_errors(name):
                write_deltalake(
                    self.path(name) if base is None else base,
                    rows,
                    storage_options=dict(self.storage_options),
                    commit_properties=commit,
                    writer_properties=ZSTD,
                    **{"mode": "overwrite", **how, **({"mode": "error"} if base is None else {})},
                )
        except DeltaError as error:
            if isinstance(error, CommitFailedError) or "already exists" in str(error):
                return False
            raise
        return True

    def compact(self, name: str, table: DeltaTable) -> bool:
        """Overwrite a table of many files with its own rows; False if another process has committed since the opening.

        Of two calls of `optimize.compact` at one version delta-rs commits both, and every row is there twice.
        """
        return self.put(name, table.to_pyarrow_dataset().to_table(), table)

    def files(self, address: str) -> PyFileSystem:
        return PyFileSystem(DeltaStorageHandler(address, dict(self.storage_options)))


class NewestLog:
    """A table for reading, opened again only when it has changed: a plan asks the event log hundreds of times."""

    def __init__(self, store: Store, name: str) -> None:
        self._store, self._name = store, name
        self._table: DeltaTable | None = None
        self._state: tuple[int, ...] = ()

    def table(self) -> DeltaTable | None:
        """Return the table at its newest version; None if it does not exist."""
        if self._table is None or not self._state or _state(self._table) != self._state:
            self._table = self._store.table(self._name)
            self._state = () if self._table is None else _state(self._table)
        return self._table


def _state(table: DeltaTable) -> tuple[int, ...]:
    """Return what identifies the file of a table's commit; empty if it is gone, not the newest, or not local."""
    folder = local_folder(table)
    if folder is None:
        return ()
    log, version = folder / "_delta_log", table.version()
    try:
        stat = (log / f"{version:020d}.json").stat()
    except FileNotFoundError:
        return ()
    return () if (log / f"{version + 1:020d}.json").exists() else (stat.st_ino, stat.st_mtime_ns, stat.st_size)


def plain(path: str) -> str:
    return "/" + path.removeprefix("file:").lstrip("/") if path.startswith("file:") else path


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
    """Verify the files that may have some rows (an SQL condition), each once in a process until it changes."""
    folder = local_folder(table)
    if folder is None:
        return
    # The addresses encode the table's folder, and not what is in it.
    encoded = urlparse(table.table_uri).path
    for uri in table.file_uris(file_pruning_predicate=rows):
        file = folder / uri.removeprefix("file://").removeprefix(encoded)
        # One that is gone is named by its reader.
        if file.exists() and (problem := problem_of(file, file.stat().st_size, read=True)):
            raise DataFileDamaged(where, str(file), problem)


def local_folder(table: DeltaTable) -> Path | None:
    """Return the folder of a table; None if it is in an object store."""
    address = urlparse(table.table_uri)
    return Path(unquote(address.path)) if address.scheme in ("", "file") else None


def file_of(folder: Path, path: str) -> Path:
    return folder / unquote(path)


@lru_cache(maxsize=100_000)
def _verified(file: Path, modified: int, changed: int) -> str | None:
    return mismatch(file)
