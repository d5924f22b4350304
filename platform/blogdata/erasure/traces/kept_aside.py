"""Files that stand beside the tables, and are only there to be looked at: removed if they have values of the persons.

Refused batches, and Spark's log and temporary files. A folder goes by one rename before its files are removed, so that
nobody reads half of it.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection
from pathlib import Path

from blogdata.erasure.cleared import Cleared, Note
from blogdata.services import spark_connect
from blogdata.services.config import Settings

_GONE = ".erased"


def clear_refused(lake: Path, paths: Collection[str], note: Note) -> Cleared:
    """Remove the refused batches that have values."""
    prefix = "lake/refused/"
    names = {path.removeprefix(prefix).partition("/")[0] for path in paths if path.startswith(prefix)}
    folders = [lake / "refused" / name for name in sorted(names)]
    note(done := Cleared(place="refused batches", files=sum(files_in(one) for one in folders)))
    for one in folders:
        remove_folder(one)
    return done


def clear_spark(settings: Settings, paths: Collection[str], note: Note) -> Cleared:
    """Remove Spark's log and temporary files that have values, unless the server is running."""
    found = [settings.home / path for path in paths if path.startswith("services/spark/")]
    servers = (settings, spark_connect.of_roles(settings))
    if found and any(spark_connect.status(each).state == "running" for each in servers):
        return Cleared(place="services/spark", left="the Spark server is running: stop it first")
    note(done := Cleared(place="services/spark", files=len(found)))
    for file in found:
        file.unlink(missing_ok=True)
    return done


def files_in(folder: Path) -> int:
    """Count the files of a folder."""
    return sum(1 for file in folder.rglob("*") if file.is_file())


def remove_folder(folder: Path) -> None:
    """Remove a folder that others may read."""
    hidden = folder if folder.name.endswith(_GONE) else folder.with_name(f".{folder.name}{_GONE}")
    if folder != hidden and folder.exists():
        shutil.rmtree(hidden, ignore_errors=True)
        folder.rename(hidden)
    shutil.rmtree(hidden, ignore_errors=True)
