"""Folders with copies of tables: those that the settings name, who may read them, and their end."""

from __future__ import annotations

import grp
from collections.abc import Collection
from typing import Any

from blogdata.errors import ConfigurationError
from blogdata.patterns.security import role_folders
from blogdata.services import exports
from blogdata.services.config import Settings
from blogdata.services.exports import Export


def named(settings: Settings, readers: Collection[str]) -> list[Export]:
    """List the folders of some readers that the settings name; no other one gets copies."""
    places = ((reader, getattr(settings.copies, reader)) for reader in sorted(readers))
    return [Export(role=reader, folder=place.folder, group=place.group) for reader, place in places if place]


def required(settings: Settings, readers: Collection[str]) -> list[Export]:
    if found := named(settings, readers):
        return found
    raise ConfigurationError(
        what=f"no folder is named for {', '.join(readers)}",
        where=str(settings.home / "blogdata.toml"),
        next_step="write [copies.READER] with folder and group into it: a run cannot choose where copies go",
    )


def withdraw(settings: Settings, readers: Collection[str]) -> dict[str, Any]:
    """Remove all copies from the folders of some readers that the settings do not name (any more)."""
    gone = [one for one in exports.known(settings) if one.role in readers and one not in named(settings, readers)]
    if not gone:
        raise ConfigurationError(
            what=f"no folder has copies for {', '.join(readers)} but those that the settings name",
            where=str(settings.home / "blogdata.toml"),
            next_step="remove the section [copies.READER] first, or the next run would write them again",
        )
    files = sum(role_folders.remove(one.folder, name) for one in gone for name in role_folders.datasets(one.folder))
    for one in gone:
        exports.drop(settings, one)
    return {"folders": ", ".join(str(one.folder) for one in gone), "files_withdrawn": files}


def number_of(group: str) -> int:
    try:
        return grp.getgrnam(group).gr_gid
    except KeyError as error:
        raise ConfigurationError(
            what=f"this machine has no group {group}", where="[copies]", next_step="make it, or name another"
        ) from error
