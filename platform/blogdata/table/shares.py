"""Versions of datasets that are shared by a manifest: their files stay while somebody may read them by name.

A share is a folder, `<lake>/_shares/<dataset>/<name>/`, with a manifest and its record, which appears by one rename.
Whatever deletes files of tables asks :func:`shared_files` first.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from blogdata.errors import ConfigurationError
from blogdata.table.store import Store, plain

FOLDER = "_shares"
"""Folder of the lake; by the underscore it is no layer."""
RECORD = "_share.json"
"""File beside a manifest; readers of the manifest pass over it because of the underscore."""
MANIFEST = "manifest"
"""Name of the text files with the addresses of data files."""


@dataclass(frozen=True, kw_only=True)
class Share:
    dataset: str
    version: int
    since: datetime
    files: int
    rows: int
    table_id: str

    @property
    def name(self) -> str:
        """Name of its folder: its version, and the beginning of the table's id."""
        return f"{self.version}-{self.table_id[:8]}"


def home(store: Store, dataset: str = "") -> Path:
    """Return the folder with the shares of a dataset, or of all; refuse a lake in an object store."""
    root = store.folder(FOLDER)
    if root is None:
        raise ConfigurationError(
            what="a dataset in an object store is not shared by a manifest, which could not be replaced at once there",
            where=store.root,
            next_step="let its readers open the tables themselves: any Spark, DuckDB or Trino that knows Delta",
        )
    return root / dataset


def shared_files(store: Store, dataset: str) -> set[Path]:
    """List the data files that manifests name: their readers need no log, which may tell of the version no more."""
    records = [] if store.folder(FOLDER) is None else home(store, dataset).glob(f"[!.]*/{RECORD}")
    named = {manifest for record in records for manifest in record.parent.resolve().rglob(MANIFEST)}
    return {Path(plain(line)) for manifest in named for line in manifest.read_text("utf-8").splitlines()}
