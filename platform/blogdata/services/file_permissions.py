"""Who may reach the files of a deployment: its owner, and nobody else.

The home folder is the wall: it is closed to all other users, so what lies in it is out of their reach whatever its own
permissions. Files with secrets or persons are created for their owner only all the same, because a file may be copied
to another place. A landing zone or a lake outside the home keeps the permissions that its owner gave it: producers and
readers of other users need them.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

_OTHERS = 0o077
_SECRETS = ("blogdata.toml", "secrets/*", "services/*/*.json", "services/*/*.conf")


def close(home: Path, landing: Path) -> None:
    """Close a home folder to other users, unless they share it.

    A folder made by an earlier version is open. It stays open if it is another user's, as the volume of a container may
    be, or is for everybody (sticky), or if entries of it or of its landing zone are another user's: a producer of that
    user would be locked out. :mod:`blogdata.services.reach` tells what this leaves open.
    """
    state = home.stat()
    if not state.st_mode & _OTHERS or state.st_mode & stat.S_ISVTX or state.st_uid != os.geteuid():
        return
    if not any(_is_of_another(entry, state.st_uid) for entry in _entries(home, landing)):
        home.chmod(0o700)


def exposed_secrets(home: Path) -> list[Path]:
    """List the files with secrets that the group or all users may read."""
    patterns = _SECRETS if _is_open(home) else ("secrets/*",)
    found = (file for pattern in patterns for file in home.glob(pattern))
    return sorted(file for file in found if file.is_file() and _is_open(file))


def _is_open(path: Path) -> bool:
    return bool(path.stat().st_mode & _OTHERS)


def _entries(home: Path, landing: Path) -> Iterator[Path]:
    yield from home.iterdir()
    if landing.is_relative_to(home):
        for folder, folders, files in os.walk(landing):
            yield from (Path(folder, name) for name in (*folders, *files))


def _is_of_another(path: Path, user: int) -> bool:
    try:
        return path.lstat().st_uid != user
    except FileNotFoundError:
        return False  # It has been removed since it was listed.
