"""Finds the files of a local table that nobody can need any more: data files, and the log of versions long gone.

Delta's own vacuum knows no versions to keep, and that of delta-rs opens each of them. So both are done here, without a
JVM. Nothing is committed: a publication that was computed for a version of the table is not disturbed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from deltalake.exceptions import DeltaError, TableNotFoundError

from blogdata.table import arrow
from blogdata.table.faults import LogDamaged
from blogdata.table.store import Store, file_of, mismatch, sums_of

if TYPE_CHECKING:
    from deltalake import DeltaTable

READABLE = timedelta(days=7)
"""How long a replaced version stays readable, unless the table says otherwise: no reader may use one for longer."""
LOGGED = timedelta(days=30)
"""How long the log tells of a version, unless the table says otherwise."""
MARGIN = timedelta(days=1)
"""A file is written before the commit that adds it, and no write takes so long."""
_LOG_FILE = re.compile(r"^\.?(\d{20})\.")
_CHECKPOINT = re.compile(r"^(\d{20})\.checkpoint\.parquet$")
"""One in several files may lack some of them, and is no beginning."""
_INTERVAL = re.compile(r"^\s*interval\s+(\d+)\s+(week|day|hour|minute|second)s?\s*$", re.IGNORECASE)
_ENDLESS = timedelta(weeks=52 * 100)


def data_files(store: Store, name: str, held: Collection[int], now: datetime) -> list[Path]:
    """List the data files that no version needs that may still be read, those of writes that were cut off included.

    Empty if the lake is in an object store, or the version of that time is no longer in the log.
    """
    table, folder = store.table(name), store.folder(name)
    if table is None or folder is None:
        return []
    cutoff = now - _interval(table, "delta.deletedFileRetentionDuration", READABLE)
    try:
        oldest = _version_at(store, table, cutoff)
        if oldest is None:
            return []
        needed = _files(table, folder) | _files(store.at(name, oldest), folder)
        for version in range(oldest + 1, table.version() + 1):
            # By their times alone, those of a home that was unpacked would be older than what they replaced.
            lines = (folder / "_delta_log" / f"{version:020}.json").read_bytes().splitlines()
            needed |= _both(folder, (action["add"]["path"] for action in map(json.loads, lines) if "add" in action))
        for version in held:
            # One that is no longer in the log cannot be opened at any rate.
            with suppress(TableNotFoundError):
                needed |= _files(store.at(name, version), folder)
    except (LogDamaged, DeltaError, FileNotFoundError, ValueError):
        # What such a version needs is unknown.
        return []
    last = (cutoff - MARGIN).timestamp()
    old = (file for file in folder.rglob("*.parquet") if file not in needed and _is_older(file, last))
    return sorted(file for file in old if not file.relative_to(folder).parts[0].startswith("_"))


def superseded(store: Store, name: str, version: int, before: float) -> list[Path]:
    """List the files with rows, or changed rows, from before a moment that neither a version nor the newest needs."""
    table, folder = store.table(name), store.folder(name)
    if table is None or folder is None:
        return []
    needed = _files(table, folder) | _files(store.at(name, version), folder)
    old = (file for file in folder.rglob("*.parquet") if file not in needed and _is_older(file, before))
    return sorted(file for file in old if file.relative_to(folder).parts[0] != "_delta_log")


def log_files(store: Store, name: str, keep_from: int, now: datetime) -> list[Path]:
    """List the files of a table's log before the checkpoint from which it still has to tell, the oldest first."""
    table, folder = store.table(name), store.folder(name)
    if table is None or folder is None:
        return []
    try:
        oldest = _version_at(store, table, now - _interval(table, "delta.logRetentionDuration", LOGGED))
    except LogDamaged:
        return []
    log = folder / "_delta_log"
    numbered = [(int(match[1]), file) for file in log.iterdir() if (match := _LOG_FILE.match(file.name))]
    bound = min(keep_from, -1 if oldest is None else oldest)
    checkpoints = {number: file for number, file in numbered if _CHECKPOINT.match(file.name) and number <= bound}
    first = max(checkpoints, default=-1)
    before = [file for number, file in sorted(numbered) if number < first]
    # Without the commits before it, a damaged checkpoint is the end of the table.
    return before if before and _is_whole(store, name, first, checkpoints[first]) else []


def sizes(files: Iterable[Path]) -> list[int]:
    """Return the bytes of each file; one that another removal has taken meanwhile is left out."""
    bytes_of = []
    for file in files:
        with suppress(FileNotFoundError):
            bytes_of.append(file.stat().st_size)
    return bytes_of


def remove(files: Collection[Path]) -> None:
    """Remove files with their checksum files; a removal that is cut off is completed by the next one."""
    for file in files:
        sums_of(file).unlink(missing_ok=True)
        file.unlink(missing_ok=True)
        # A write has a folder of its own below `data`; once it is empty, nobody writes into it again.
        with suppress(OSError):
            for folder in (file.parent, file.parent.parent):
                if "data" in (folder.parent.name, folder.parent.parent.name):
                    folder.rmdir()


def _is_whole(store: Store, name: str, version: int, checkpoint: Path) -> bool:
    try:
        if mismatch(checkpoint) is not None:
            return False
        # One that a writer without a JVM has made has no checksums.
        store.at(name, version)
    except (LogDamaged, DeltaError, FileNotFoundError):
        return False
    return True


def _is_older(file: Path, moment: float) -> bool:
    """Return whether a file is there and was written before a moment; another removal may have taken it."""
    try:
        return file.stat().st_mtime < moment
    except FileNotFoundError:
        return False


def _files(table: DeltaTable, folder: Path) -> set[Path]:
    return _both(folder, (row["path"] for row in arrow.rows_of(table.get_add_actions(flatten=True), ["path"])))


def _both(folder: Path, paths: Iterable[str]) -> set[Path]:
    # As it is and decoded: the name of a folder may have been encoded when it was made.
    return {file for path in paths for file in (folder / path, file_of(folder, path))}


def _version_at(store: Store, table: DeltaTable, moment: datetime) -> int | None:
    """Return the newest version at a moment, by the times of commits, not of files; None before the log begins."""
    at = moment.timestamp() * 1000
    return next((version for version, commit in store.commits(table) if commit["timestamp"] < at), None)


def _interval(table: DeltaTable, name: str, default: timedelta) -> timedelta:
    """Return a retention of a table, written as `interval 32 days`; one that is written otherwise never ends."""
    interval = table.metadata().configuration.get(name)
    if interval is None:
        return default
    match = _INTERVAL.match(interval)
    return timedelta(**{f"{match[2].lower()}s": int(match[1])}) if match else _ENDLESS
