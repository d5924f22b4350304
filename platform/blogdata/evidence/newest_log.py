"""A table's log as its readers open it: again only when it has changed.

Opening one takes milliseconds of processor time, and a plan asks the event log about every dataset, hundreds of times
in an hour's run. Delta names the file of each commit by its version, so the file system tells whether there is a newer
one.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from deltalake import DeltaTable

from blogdata.lake.checksums import local_folder
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
