"""Manifest: a list of files says what a dataset is, so its reader lists no folder and knows no table format.

Problem: a reader that does not know Delta lists the folder of a table: it takes files of old versions, and of writers
that died, for rows; and it waits for the listing.
How it works: :func:`share` writes the files of one version in the layout of Delta's own symlink manifests
(`GENERATE`): a `manifest` in a folder for each partition, with a file's address on each line. It is staged, appears as
`<lake>/_shares/<dataset>/<name>/` by one rename, and readers find it by a link that is switched atomically. Its files
are held: what deletes files of tables asks :func:`shared_files` first, until the share is withdrawn (:func:`withdraw`)
or moved to a newer version. The previous manifest stays until then as well, for readers that began with it. Whole files
show every column, so a dataset with a person's values is refused, and so is one with rows that are only marked as
removed, which a plain reader would see.

A load manifest lists what a copy has to load, so that a repeated or continued copy loads nothing twice and nothing that
came later. For the copy into PostgreSQL it is the table `publications`, written in the transaction of the rows
(:func:`blogdata.deliver.transactional_sink.served`).
The trap: a manifest is not the table. It shows one version until somebody shares again, and if nothing holds that, a
vacuum deletes its files.
When not to use it: for readers that know Delta: they see the newest rows, and views without personal columns
(:mod:`blogdata.deliver.lake_views`).
Source: Data Engineering Design Patterns, ch. 8.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from urllib.parse import quote

from blogdata import files as whole_file
from blogdata.contract.contract import Contract
from blogdata.contract.migrations import carried
from blogdata.errors import ConfigurationError, PlatformError
from blogdata.errors.remedies import Remedy, Run, WriteViews
from blogdata.files import CURRENT
from blogdata.table import arrow
from blogdata.table.lake import DatasetMissing, Lake, TableSlice, marks_rows
from blogdata.table.store import file_of, plain

_FOLDER = "_shares"
"""Folder of the lake; by the underscore it is no layer."""
_RECORD = "_share.json"
"""File beside a manifest; readers of the manifest pass over it because of the underscore."""
MANIFEST = "manifest"
"""Name of the text files with the addresses of data files."""


@dataclass(frozen=True, kw_only=True)
class Share:
    dataset: str
    version: int
    since: str
    """When it was shared, UTC."""
    files: int
    rows: int
    table_id: str

    @property
    def name(self) -> str:
        """Name of its folder: its version, and the beginning of the table's id."""
        return f"{self.version}-{self.table_id[:8]}"


def home(lake: Lake, dataset: str = "") -> Path:
    """Return the folder with the shares of a dataset, or of all; refuse a lake in an object store."""
    root = lake.folder(_FOLDER)
    if root is None:
        raise ConfigurationError(
            what="a dataset in an object store is not shared by a manifest, which could not be replaced at once there",
            where=lake.root,
            next_step="let its readers open the tables themselves: any Spark, DuckDB or Trino that knows Delta",
        )
    return root / dataset


def shared_files(lake: Lake, dataset: str) -> set[Path]:
    """List the data files that manifests name: their readers need no log, which may tell of the version no more."""
    records = [] if lake.folder(_FOLDER) is None else home(lake, dataset).glob(f"[!.]*/{_RECORD}")
    named = {manifest for record in records for manifest in record.parent.resolve().rglob(MANIFEST)}
    return {Path(plain(line)) for manifest in named for line in manifest.read_text("utf-8").splitlines()}


def current(lake: Lake, dataset: str) -> Share | None:
    """Return the share that readers find; None if the dataset is not shared."""
    record = location(lake, dataset) / _RECORD
    return Share(**json.loads(record.read_text(encoding="utf-8"))) if record.exists() else None


def share(lake: Lake, declared: Contract, *, now: datetime | None = None) -> Share:
    """Share the newest version of a dataset, unless it is shared already; one process does so at a time."""
    dataset = declared.dataset
    folder, before, table = home(lake, dataset), current(lake, dataset), lake.caught_up(dataset)
    if table is None:
        raise DatasetMissing(
            what=f"{dataset} has no table yet",
            where=lake.path(dataset),
            next_step=Remedy(f"materialize {dataset} first, or run: ", Run()),
        )
    parts = lake.parts(dataset, table.version())
    _refuse_what_files_show(carried(declared, table), parts)
    listed = [file for part in parts for file in _files(lake, part)]
    new = Share(
        dataset=dataset,
        version=table.version(),
        since=f"{now or datetime.now(timezone.utc):%Y-%m-%d %H:%M:%S}",
        files=len(listed),
        rows=sum(rows for *_, rows in listed),
        table_id=str(table.metadata().id),
    )
    if before is not None and before.name == new.name:
        return before
    partitioned = declared.partition_column is not None
    whole_file.appear(folder, new.name, partial(_write, new=new, listed=listed, partitioned=partitioned))
    whole_file.switch(folder, new.name)
    whole_file.remove_others(folder, keep={new.name} if before is None else {new.name, before.name})
    return new


def withdraw(lake: Lake, dataset: str) -> None:
    """End the shares of a dataset: readers find no manifest any more, and its files are no longer held."""
    location(lake, dataset).unlink(missing_ok=True)
    whole_file.remove_others(home(lake, dataset), keep=())


def location(lake: Lake, dataset: str) -> Path:
    return home(lake, dataset) / CURRENT


def _refuse_what_files_show(contract: Contract, parts: Sequence[TableSlice]) -> None:
    persons = [column.name for column in contract.columns if column.personal or column.of_a_person]
    if persons:
        raise PlatformError(
            what=f"its files show who did what, by {', '.join(persons)}; a manifest cannot leave columns out",
            where=contract.dataset,
            next_step=Remedy("give readers that know Delta the view without these columns: ", WriteViews()),
        )
    if any(marks_rows(part.table) for part in parts):
        raise PlatformError(
            what="rows of its files are marked as removed (deletion vectors), and a plain reader would see them",
            where=contract.dataset,
            next_step="rewrite its files without these rows (Spark SQL: REORG TABLE ... APPLY (PURGE)), and share it",
        )


def _files(lake: Lake, part: TableSlice) -> Iterator[tuple[str, Path, int]]:
    """List the data files: folder within the table (`column=value`, `.` of an unpartitioned one), file and rows."""
    folder = lake.folder(part.name)
    assert folder is not None
    column = next(iter(part.table.metadata().partition_columns), None)
    names = ["path", "num_records", *([] if column is None else [f"partition.{column}"])]
    for action in arrow.rows_of(part.table.get_add_actions(flatten=True), names):
        if part.partitions is None or action[f"partition.{column}"] in part.partitions:
            value = "." if column is None else f"{column}={quote(str(action[f'partition.{column}']), safe='')}"
            yield value, file_of(folder, action["path"]), int(action["num_records"])


def _write(staged: Path, new: Share, listed: Sequence[tuple[str, Path, int]], *, partitioned: bool) -> None:
    staged.mkdir()
    lines: dict[str, list[str]] = {} if partitioned else {".": []}
    for folder, file, _ in listed:
        # As Delta itself writes it: the path as it is. Readers of this layout do not decode escapes.
        lines.setdefault(folder, []).append(f"file://{file}\n")
    for folder, files in lines.items():
        (staged / folder).mkdir(parents=True, exist_ok=True)
        (staged / folder / MANIFEST).write_text("".join(sorted(files)), encoding="utf-8")
    (staged / _RECORD).write_text(json.dumps(asdict(new)), encoding="utf-8")
