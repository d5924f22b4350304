"""Replicates Delta tables byte for byte: data files, deletion vectors, and the log up to one version.

Pattern: Passthrough Replicator (:mod:`blogdata.patterns.ingestion.passthrough_replicator`).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from deltalake import DeltaTable

from blogdata.errors import PlatformError
from blogdata.lake import arrow, members
from blogdata.lake.checksums import file_of, sums_of
from blogdata.lake.store import Store
from blogdata.patterns.ingestion.passthrough_replicator import CorruptCopy, replicate
from blogdata.patterns.ingestion.whole_files import SourceMissing
from blogdata.publish.migrations import REMOVED

_LOG = "_delta_log"
_LAST = "_last_checkpoint"
_OF_VERSION = re.compile(r"^(\d{20})\.(?:json|crc|checkpoint(?:\.\d{10}\.\d{10})?\.parquet)$")
"""Files of a log that belong to one version; what Delta writes besides is only made of them."""


class SourceMoved(PlatformError):
    """Raised when files of the version that is copied have been removed, because a newer one has replaced it."""

    transient = True


def is_whole_in_files(store: Store, table: str) -> bool:
    """Return whether the files of a table can be copied as they are, and are all that there is to copy.

    Not in an object store, nor of a table that points to others, or has files with values of a removed column.
    """
    opened = store.table(table)
    assert opened is not None
    is_one = store.folder(table) is not None and not members.is_pointer(opened)
    return is_one and not opened.metadata().configuration.get(REMOVED)


def copy_table(store: Store, table: str, version: int, target: Path) -> None:
    """Copy one version of a table with its log, byte for byte: first the data, then the log in its order.

    Whoever writes to the table meanwhile is not waited for: later commits are not copied. Earlier versions that are
    still in the log are in the copy as after a vacuum, without their files.
    """
    folder = store.folder(table)
    assert folder is not None
    source = store.at(table, version)
    try:
        # The vectors that mark removed rows are in the log by an encoded name, and few: all are copied.
        for file in sorted({*data_files(source, folder), *folder.rglob("deletion_vector_*.bin")}):
            _copied(file, folder, target)
        for file in _log_files(folder / _LOG, version):
            _copied(file, folder, target)
    except (SourceMissing, FileNotFoundError) as error:
        raise SourceMoved(
            what=f"files of version {version} were removed while it was copied",
            where=table,
            next_step="copy its newest version",
        ) from error
    _require_same(source, folder, target)


def keep_readable(before: Path, target: Path) -> None:
    """Give a new copy the data files of the one before it, for readers that have begun: its log does not name them."""
    for file in data_files(DeltaTable(before), before):
        for each in (file, sums_of(file)):
            linked = target / each.relative_to(before)
            linked.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError, FileNotFoundError):
                os.link(each, linked)


def data_files(table: DeltaTable, folder: Path) -> Iterator[Path]:
    for action in arrow.rows_of(table.get_add_actions(flatten=True), ["path"]):
        yield file_of(folder, action["path"])


def _log_files(log: Path, version: int) -> Iterator[Path]:
    numbered = [(int(match[1]), file) for file in log.iterdir() if (match := _OF_VERSION.match(file.name))]
    yield from (file for number, file in sorted(numbered) if number <= version)
    last = log / _LAST
    if last.exists() and json.loads(last.read_bytes())["version"] <= version:
        yield last


def _copied(file: Path, folder: Path, target: Path) -> None:
    copy = target / file.relative_to(folder)
    replicate(file, copy)
    if sums_of(file).exists():
        replicate(sums_of(file), sums_of(copy))


def _require_same(source: DeltaTable, folder: Path, target: Path) -> None:
    copied = DeltaTable(target)
    wanted = {file.relative_to(folder) for file in data_files(source, folder)}
    found = {file.relative_to(target) for file in data_files(copied, target) if file.exists()}
    if (copied.version(), found) != (source.version(), wanted):
        raise CorruptCopy(
            what=f"the copy of version {source.version()} is another table",
            where=str(folder),
            next_step="check the disk of the target, then copy again",
        )
