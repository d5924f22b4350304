"""Folders with copies of tables, as commands name them: which one is meant, who may read it, and its end."""

from __future__ import annotations

import grp
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from blogdata.errors import ConfigurationError
from blogdata.patterns.security import role_folders
from blogdata.services import exports
from blogdata.services.config import Settings
from blogdata.services.exports import Export


def chosen(settings: Settings, reader: str, folder: Path | None, group: str | None, *, command: str) -> Export:
    """Find the folder that is meant: the one that is named, or the only one that the reader has.

    Args:
        settings: Settings of the deployment.
        reader: Who reads: a role, or staging.
        folder: The folder, as it was named; None: it was not.
        group: Group that may read it; None: not named.
        command: The command that names both.

    Raises:
        ConfigurationError: The folder is new, and not both are named.
    """
    given = None if folder is None else folder.absolute().resolve()
    before = [one for one in exports.known(settings) if one.role == reader and given in (None, one.folder)]
    if len(before) == 1 and group in (None, before[0].group):
        return before[0]
    if given is None or group is None:
        raise ConfigurationError(
            what=f"it is not known where the role {reader} reads, or which group it is",
            where=command.split()[1],
            next_step=f"name both: {command} FOLDER --group GROUP",
        )
    return Export(role=reader, folder=given, group=group)


def known(settings: Settings, readers: Collection[str]) -> list[Export]:
    """List the folders that the home has recorded for some readers."""
    return [one for one in exports.known(settings) if one.role in readers]


def recorded(settings: Settings, readers: Collection[str]) -> list[Export]:
    """As :func:`known`.

    Raises:
        ConfigurationError: There is none.
    """
    if found := known(settings, readers):
        return found
    raise ConfigurationError(
        what=f"no folder is recorded for {', '.join(readers)}",
        where=str(settings.home),
        next_step="name the folder and its group on the terminal first: a run cannot choose where copies go",
    )


def withdrawn(settings: Settings, chosen: Sequence[Export]) -> dict[str, Any]:
    """Remove the copies of the one folder that is meant.

    Raises:
        ConfigurationError: Several are meant.
    """
    if len(chosen) > 1:
        raise ConfigurationError(
            what=f"{len(chosen)} folders have copies", where="withdraw", next_step="name the role whose copies go"
        )
    return {"folder": str(chosen[0].folder), "files_withdrawn": withdraw(settings, chosen[0])}


def number_of(group: str) -> int:
    """Return the number of a group of this machine.

    Raises:
        ConfigurationError: There is no such group.
    """
    try:
        return grp.getgrnam(group).gr_gid
    except KeyError as error:
        raise ConfigurationError(
            what=f"this machine has no group {group}", where="--group", next_step="make it, or name another"
        ) from error


def withdraw(settings: Settings, export: Export) -> int:
    """Remove all copies of a folder, and return the number of their files.

    Raises:
        ConfigurationError: It has no copies for this reader.
    """
    if export not in exports.known(settings):
        raise ConfigurationError(
            what=f"the role {export.role} has no copies there",
            where=str(export.folder),
            next_step="see which role reads where: the job export shows it",
        )
    files = sum(role_folders.remove(export.folder, name) for name in role_folders.datasets(export.folder))
    exports.drop(settings, export)
    return files
