"""Versions of datasets that are shared by a manifest: their files stay while somebody may read them by name.

A share is a folder, `<lake>/_shares/<dataset>/<name>/`, with a manifest and its record: which version of which tables
it lists the files of. The folder appears by one rename, so a version is held from the moment on at which its manifest
can be found, and until the folder is gone. Whatever deletes files of tables asks :func:`shared_versions` first.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from blogdata.durable.whole_file import CURRENT
from blogdata.errors import ConfigurationError
from blogdata.errors.remedies import Remedy, WithdrawShare
from blogdata.lake import members
from blogdata.lake.store import Store, plain

FOLDER = "_shares"
"""Folder of the lake; by the underscore it is no layer."""
RECORD = "_share.json"
"""File beside a manifest; readers of the manifest pass over it because of the underscore."""
MANIFEST = "manifest"
"""Name of the text files with the addresses of data files."""


@dataclass(frozen=True, kw_only=True)
class Held:
    """The version of a table whose files a manifest lists."""

    id: str
    version: int


@dataclass(frozen=True, kw_only=True)
class Share:
    """One shared version of a dataset.

    Args:
        since: When it was shared, UTC.
    """

    dataset: str
    version: int
    since: datetime
    files: int
    rows: int
    tables: Mapping[str, Held]

    @property
    def name(self) -> str:
        """Name of its folder: its version, and the beginning of the table's id."""
        return f"{self.version}-{self.tables[self.dataset].id[:8]}"

    def as_json(self) -> dict[str, Any]:
        """Return it as it is recorded and printed."""
        return {**asdict(self), "since": self.since.isoformat(timespec="seconds")}


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


def shares(store: Store, dataset: str) -> list[Share]:
    """List the shares of a dataset, the one before the current one included, by version."""
    records = [] if store.folder(FOLDER) is None else home(store, dataset).glob(f"[!.]*/{RECORD}")
    found = {record.parent.resolve(): _read(record) for record in records}
    return sorted(found.values(), key=lambda share: share.version)


def shared_files(store: Store, dataset: str) -> set[Path]:
    """List the data files that manifests name: their readers need no log, which may tell of the version no more."""
    records = [] if store.folder(FOLDER) is None else home(store, dataset).glob(f"[!.]*/{RECORD}")
    named = {manifest for record in records for manifest in record.parent.resolve().rglob(MANIFEST)}
    return {Path(plain(line)) for manifest in named for line in manifest.read_text("utf-8").splitlines()}


def current(store: Store, dataset: str) -> Share | None:
    """Return the share that readers find; None if the dataset is not shared."""
    record = home(store, dataset) / CURRENT / RECORD
    return _read(record) if record.exists() else None


def shared_versions(store: Store, table: str) -> dict[int, str]:
    """List the versions of a table whose files are shared, and must be kept, with the reason."""
    dataset = members.dataset_of(table)
    held = [(share, share.tables[table]) for share in shares(store, dataset) if table in share.tables]
    opened = store.table(table) if held else None
    return {
        one.version: f"shared by a manifest since {share.since:%Y-%m-%d %H:%M}; "
        f"{Remedy('to end it: ', WithdrawShare(dataset=dataset))}"
        for share, one in held
        if opened is not None and str(opened.metadata().id) == one.id
    }


def _read(record: Path) -> Share:
    found = json.loads(record.read_text(encoding="utf-8"))
    tables = {name: Held(**held) for name, held in found["tables"].items()}
    return Share(**{**found, "since": datetime.fromisoformat(found["since"]), "tables": tables})
