"""Files that stand beside the tables, and are only there to be looked at: removed if they have values of the persons.

Refused batches, copies that were made to be broken, and Spark's log and temporary files. A folder goes by one rename
before its files are removed, so that nobody reads half of it.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection
from pathlib import Path

from blogdata.erasure.cleared import Cleared
from blogdata.services import config, spark_connect
from blogdata.services.config import Settings

_GONE = ".erased"


def clear_refused(lake: Path, paths: Collection[str]) -> Cleared:
    """Remove the refused batches that have values.

    Args:
        lake: Folder of the lake.
        paths: Files with values, below the home, the lake at its default place.
    """
    return _clear_folders("refused batches", lake / "refused", "lake/refused/", paths)


def clear_copies(settings: Settings, paths: Collection[str]) -> Cleared:
    """Remove the copies to break that have values; their Spark servers are stopped.

    Args:
        settings: Settings of the deployment.
        paths: Files with values, below the home.
    """
    folder = settings.home / "break"
    for name in _names("break/", paths):
        spark_connect.stop(config.load(overrides={"BLOGDATA_HOME": str(folder / name)}))
    return _clear_folders("copies to break", folder, "break/", paths)


def clear_spark(settings: Settings, paths: Collection[str]) -> Cleared:
    """Remove Spark's log and temporary files that have values, unless the server is running.

    Args:
        settings: Settings of the deployment.
        paths: Files with values, below the home.
    """
    found = [settings.home / path for path in paths if path.startswith("services/spark/")]
    if found and spark_connect.status(settings).state == "running":
        return Cleared(place="services/spark", left="the Spark server is running: stop it first")
    for file in found:
        file.unlink(missing_ok=True)
    return Cleared(place="services/spark", files=len(found))


def _clear_folders(place: str, folder: Path, prefix: str, paths: Collection[str]) -> Cleared:
    files = 0
    for name in _names(prefix, paths):
        files += remove_folder(folder / name)
    return Cleared(place=place, files=files)


def _names(prefix: str, paths: Collection[str]) -> list[str]:
    return sorted({path.removeprefix(prefix).partition("/")[0] for path in paths if path.startswith(prefix)})


def remove_folder(folder: Path) -> int:
    """Remove a folder that others may read, and return the number of its files."""
    hidden = folder if folder.name.endswith(_GONE) else folder.with_name(f".{folder.name}{_GONE}")
    if folder != hidden and folder.exists():
        shutil.rmtree(hidden, ignore_errors=True)
        folder.rename(hidden)
    files = sum(1 for file in hidden.rglob("*") if file.is_file())
    shutil.rmtree(hidden, ignore_errors=True)
    return files
