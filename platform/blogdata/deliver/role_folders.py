"""Copies of datasets in a folder of a group of the machine's users: what a role sees of them, or what staging gets.

Whoever may read the files of a table reads all of it, whatever a view leaves out. So a role whose users read files gets
copies that have nothing else: the rows and columns of the Fine-Grained Accessor for Tables, written once more, in a
folder that is the group's. A copy appears whole, and readers find it by a link.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from blogdata import files as whole_file
from blogdata.errors import ConfigurationError
from blogdata.files import CURRENT
from blogdata.patterns.security.fine_grained_accessor_for_tables import Shown, Sight
from blogdata.table.lake import Lake

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROWS = "rows"
"""Folder of a copy with its rows: Parquet files, or a Delta table."""
_FOLDER, _FILE = 0o750, 0o640


def written(folder: Path, dataset: str) -> str | None:
    """Return the name of the copy that readers find; None if there is none."""
    link = folder / dataset / CURRENT
    return link.readlink().name if link.is_symlink() else None


def datasets(folder: Path) -> set[str]:
    # Other folders are layers, with links to copies.
    return {path.name for path in folder.iterdir() if "." in path.name} if folder.is_dir() else set()


def write(folder: Path, dataset: str, name: str, group: int, rows: Callable[[Path], None]) -> bool:
    """Write the copy of a dataset, and let its readers find it.

    The copy before it stays for those who have begun, unless it is of other rights.
    """
    home, before = folder / dataset, written(folder, dataset)
    if before == name:
        # Also what a process that died after it had switched the link left of other rights.
        whole_file.remove_others(home, keep=_of_same_rights(name, (path.name for path in home.iterdir())))
        return False
    for each in (folder, home):
        each.mkdir(parents=True, exist_ok=True)
        _give(each, group)

    def make(staged: Path) -> None:
        # Until it is whole, nobody but the owner enters it.
        staged.mkdir(mode=0o700)
        copied = staged / ROWS
        rows(copied)
        for path in _within(copied):
            _give(path, group)
        _give(staged, group)

    whole_file.appear(home, name, make)
    whole_file.switch(home, name)
    whole_file.remove_others(home, keep=_of_same_rights(name, (name, before or name)))
    return True


def named(lake: Lake, dataset: str, version: int, seen: str) -> str:
    """Name a copy after the table, its version, and what is seen of it."""
    table = lake.table(dataset)
    assert table is not None
    digest = hashlib.sha256(seen.encode()).hexdigest()
    return f"{version}-{str(table.metadata().id)[:8]}-{digest[:8]}"


def rights_of(sight: Sight, mark: str) -> str:
    """Write what is seen of a dataset, with what tells the key of the masks from another one if there are any."""
    is_masked = Shown.HASHED in (*sight.columns.values(), *sight.private.values())
    return f"{sight!r}{mark if is_masked else ''}"


def by_spark(rows: DataFrame, folder: Path, file_format: str, partition_by: Sequence[str] = ()) -> None:
    rows.write.format(file_format).partitionBy(*partition_by).save(folder.as_uri())
    if not folder.is_dir():
        raise ConfigurationError(
            what="the Spark server has written the rows on another machine",
            where=str(folder.parent),
            next_step="write copies on the machine of the Spark server",
        )


def show_as_lake(folder: Path, dataset: str, group: int) -> None:
    """Let readers find the copy of a dataset as they find its table in a lake: `<folder>/<layer>/<table>`."""
    link = folder / dataset.replace(".", "/", 1)
    if not link.is_symlink():
        link.parent.mkdir(exist_ok=True)
        _give(link.parent, group)
        link.symlink_to(Path("..", dataset, CURRENT, ROWS))


def remove(folder: Path, dataset: str) -> int:
    """Remove all copies of a dataset, and return the number of their files."""
    home = folder / dataset
    count = sum(1 for path in _within(home) if path.is_file() and not path.is_symlink())
    (home / CURRENT).unlink(missing_ok=True)
    whole_file.remove_others(home, keep=())
    return count


def _of_same_rights(name: str, others: Iterable[str]) -> set[str]:
    rights = name.rpartition("-")[2]
    return {other for other in others if other.rpartition("-")[2] == rights}


def _within(folder: Path) -> Iterator[Path]:
    for parent, folders, files in os.walk(folder):
        yield from (Path(parent, name) for name in (*folders, *files))


def _give(path: Path, group: int) -> None:
    os.chown(path, -1, group)
    path.chmod(_FOLDER if path.is_dir() else _FILE)
