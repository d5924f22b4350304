"""What a role sees of a dataset as Parquet files of its own, which a group of the machine's users may read.

Whoever may read the files of a table reads all of it, whatever a view leaves out. So a role whose users read files gets
copies that have nothing else: the rows and columns of the Fine-Grained Accessor for Tables, written once more, in a
folder that is the group's. A copy appears whole, and readers find it by a link.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from blogdata.durable import switched_folder
from blogdata.durable.switched_folder import CURRENT
from blogdata.errors import ConfigurationError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROWS = "rows"
"""Folder of a copy with its Parquet files."""
_FOLDER, _FILE = 0o750, 0o640


def written(folder: Path, dataset: str) -> str | None:
    """Return the name of the copy that readers find; None if there is none."""
    link = folder / dataset / CURRENT
    return link.readlink().name if link.is_symlink() else None


def datasets(folder: Path) -> set[str]:
    """Return the datasets that a folder has copies of."""
    return {path.name for path in folder.iterdir() if path.is_dir()} if folder.is_dir() else set()


def write(folder: Path, dataset: str, name: str, group: int, rows: Callable[[], DataFrame]) -> bool:
    """Write the copy of a dataset, and let its readers find it.

    The copy before it stays for those who have begun, unless it is of other rights.

    Args:
        folder: Folder of the role.
        dataset: Name as `layer.table`.
        name: Name of the copy, which says of what it is: another state or other rights give another name. What
            comes after its last dash stands for the rights.
        group: Number of the group that may read it.
        rows: Makes what the role sees; called only if there is something to write.

    Returns:
        Whether something was written.

    Raises:
        ConfigurationError: The Spark server does not write on this machine.
    """
    home, before = folder / dataset, written(folder, dataset)
    if before == name:
        # Also what a process that died after it had switched the link left of other rights.
        switched_folder.remove_others(home, keep=_of_same_rights(name, (path.name for path in home.iterdir())))
        return False
    for each in (folder, home):
        each.mkdir(parents=True, exist_ok=True)
        _give(each, group)

    def make(staged: Path) -> None:
        # Until it is whole, nobody but the owner enters it.
        staged.mkdir(mode=0o700)
        copied = staged / ROWS
        rows().write.parquet(copied.as_uri())
        if not copied.is_dir():
            raise ConfigurationError(
                what="the Spark server has written the rows on another machine",
                where=str(folder),
                next_step="write copies for a role on the machine of the Spark server",
            )
        for path in _within(copied):
            _give(path, group)
        _give(staged, group)

    switched_folder.appear(home, name, make)
    switched_folder.switch(home, name)
    switched_folder.remove_others(home, keep=_of_same_rights(name, (name, before or name)))
    return True


def files(folder: Path, dataset: str) -> int:
    """Count the files of all copies of a dataset."""
    return sum(1 for path in _within(folder / dataset) if path.is_file() and not path.is_symlink())


def remove(folder: Path, dataset: str) -> int:
    """Remove all copies of a dataset, and return the number of their files."""
    home, count = folder / dataset, files(folder, dataset)
    (home / CURRENT).unlink(missing_ok=True)
    switched_folder.remove_others(home, keep=())
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
