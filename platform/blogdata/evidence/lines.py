"""The ledger line of each partition, folded from the events of the log that are about it.

A table's log as its readers open it: again only when it has changed.

Opening one takes milliseconds of processor time, and a plan asks the event log about every dataset, hundreds of times
in an hour's run. Delta names the file of each commit by its version, so the file system tells whether there is a newer
one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from blogdata.evidence.event import BEGUN_ANEW, COMPARED, EXPIRED, PUBLICATION, entry_of
from blogdata.lake.checksums import local_folder
from blogdata.lake.commit import Entry
from blogdata.lake.lake import Lake

_Stamp = tuple[int, int, int]


@dataclass(frozen=True)
class _Opened:
    table: DeltaTable
    newest: Path
    stamp: _Stamp | None

    @property
    def is_newest(self) -> bool:
        following = _commit(self.newest.parent, self.table.version() + 1)
        return self.stamp is not None and _stamp(self.newest) == self.stamp and not following.exists()


class NewestLog:
    """A table that is opened for reading. A write moves the handle it is given, so writers open their own."""

    def __init__(self, lake: Lake, name: str) -> None:
        self._lake, self._name = lake, name
        self._opened: _Opened | None = None

    def table(self) -> DeltaTable | None:
        """Return the table at its newest version; None if it does not exist.

        Raises:
            LogDamaged: A file of its log is gone, cut off or garbled.
        """
        known = self._opened
        if known is not None and known.is_newest:
            return known.table
        table = self._lake.table(self._name)
        folder = None if table is None else local_folder(table)
        self._opened = None
        if table is not None and folder is not None:
            newest = _commit(folder / "_delta_log", table.version())
            self._opened = _Opened(table, newest, _stamp(newest))
        return table


def _commit(log: Path, version: int) -> Path:
    return log / f"{version:020d}.json"


def _stamp(file: Path) -> _Stamp | None:
    try:
        found = file.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


_APPENDED = '"appended": true'
"""Searched in the unparsed payload: for tables without appends only the newest line of a partition is parsed."""


def newest_lines(rows: Iterable[dict[str, Any]], gone: int = -1) -> dict[str, Entry]:
    """Fold the events of a dataset into the ledger line of each partition.

    Returns:
        Partition key to its newest publication plus the appends after it; without those that were taken back.
    """
    newest: dict[str, dict[str, Any]] = {}
    appended: dict[str, list[Entry]] = {}
    compared: dict[tuple[str, int], dict[str, Any]] = {}
    expired: dict[str, dict[str, Any]] = {}
    # Within one version, "taken back" sorts after "publication", and so overrides it.
    for row in sorted(rows, key=lambda row: row["kind"]):
        partition = row["partition"]
        if row["kind"] == COMPARED:
            version = (partition, row["table_version"])
            compared[version] = max(compared.get(version, row), row, key=lambda each: each["recorded_at"])
        elif row["kind"] == BEGUN_ANEW:
            gone = max(gone, row["table_version"])
        elif row["kind"] == EXPIRED:
            expired[partition] = max(expired.get(partition, row), row, key=lambda each: each["table_version"])
        elif row["payload"] and _APPENDED in row["payload"]:
            appended.setdefault(partition, []).append(entry_of(row))
        elif partition not in newest or newest[partition]["table_version"] <= row["table_version"]:
            newest[partition] = row
    # What has expired stays so: its readers would be computed again without its rows.
    counting = {key for key, row in newest.items() if row["table_version"] > gone or key in expired}
    lines = {key: entry_of(row) for key, row in newest.items() if row["kind"] == PUBLICATION and key in counting}
    for (partition, number), row in compared.items():
        if partition in lines and lines[partition].version == number:
            lines[partition] = replace(lines[partition], landed=json.loads(row["payload"])["landed"])
    for partition, entries in appended.items():
        begins = max(gone, newest[partition]["table_version"] if partition in newest else -1)
        for entry in sorted(entries, key=lambda entry: entry.version):
            if entry.version > begins:
                lines[partition] = entry.after(lines[partition]) if partition in lines else entry
    for partition, row in expired.items():
        # What was published since has its rows.
        if partition in lines and lines[partition].version < row["table_version"]:
            lines[partition] = replace(lines[partition], expired=json.loads(row["payload"])["rows"])
    return {key: entry for key, entry in lines.items() if entry.version > gone or entry.expired is not None}
