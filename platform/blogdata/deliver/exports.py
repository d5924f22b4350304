"""Which folders outside of the home have copies of tables, each for a role: `exports.json` of the home."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from blogdata.errors import ConfigurationError
from blogdata.files import locked, write_atomically
from blogdata.operate.config import Settings

_RECORD = "exports.json"


@dataclass(frozen=True, kw_only=True)
class Export:
    role: str
    folder: Path
    group: str


def known(settings: Settings) -> Sequence[Export]:
    record = settings.home / _RECORD
    if not record.exists():
        return ()
    found = json.loads(record.read_text(encoding="utf-8"))
    return tuple(Export(role=one["role"], folder=Path(folder), group=one["group"]) for folder, one in found.items())


def remember(settings: Settings, export: Export) -> None:
    """Record a folder, before anything is written into it; one is for one role and one group."""
    before = {one.folder: one for one in known(settings)}
    if before.get(export.folder) == export:
        return
    why = _unfit(settings, export, before)
    if why is not None:
        raise ConfigurationError(what=why, where=str(export.folder), next_step="name another folder, a new one")
    _write(settings, [*before.values(), export])


def drop(settings: Settings, export: Export) -> None:
    _write(settings, [one for one in known(settings) if one.folder != export.folder])


def alone(settings: Settings) -> AbstractContextManager[None]:
    """Be the only process that writes or removes copies; others wait."""
    return locked(settings.home / ".exports.lock")


def _unfit(settings: Settings, export: Export, before: dict[Path, Export]) -> str | None:
    folder, home = export.folder, settings.home.resolve()
    if (other := before.get(folder)) is not None:
        return f"it is for the role {other.role} and the group {other.group}"
    if folder.is_relative_to(home) or home.is_relative_to(folder):
        return "nobody else may enter the home, so its folder is to be elsewhere"
    if any(folder.is_relative_to(one) or one.is_relative_to(folder) for one in before):
        return "it is within the folder of another role, or the other way round"
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        return "there are other files"
    if folder.exists() and folder.stat().st_uid != os.geteuid():
        return "it belongs to another user, who could read the copies and replace them"
    if (parent := next(filter(_is_of_others, folder.parents), None)) is not None:
        return f"other users may rename {parent}/…, and put a folder of theirs there"
    return None


def _is_of_others(folder: Path) -> bool:
    """Return whether other users may rename what is in a folder; of a group of one's own they are trusted."""
    if not folder.exists():
        return False
    state = folder.stat()
    if state.st_uid not in (0, os.geteuid()):
        return True
    by_group = state.st_mode & stat.S_IWGRP and state.st_gid not in (0, os.getegid())
    return bool(by_group or state.st_mode & stat.S_IWOTH) and not state.st_mode & stat.S_ISVTX


def _write(settings: Settings, exports: Sequence[Export]) -> None:
    found = {str(one.folder): {"role": one.role, "group": one.group} for one in exports}
    text = json.dumps(dict(sorted(found.items())), indent=1)
    write_atomically(settings.home / _RECORD, text.encode())
