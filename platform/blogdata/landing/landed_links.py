"""Symbolic links in a landing zone: followed within it, refused where they lead out of it.

A producer may write to its landing zone and to nothing else on the machine. A followed link would let it read files
with the permissions of the platform: `visits.json -> /etc/passwd` would end, line by line, among the dead letters. The
landing zone itself may be a link: its owner has chosen the place.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from blogdata.errors import PlatformError, shown

_OUT = "leads out of the landing zone, to"


class LinkRefused(PlatformError):
    """Raised when a symbolic link in the landing zone leads out of it, to nothing, or to a folder that contains it."""


@dataclass(frozen=True, kw_only=True)
class Obstacle:
    """An entry of the landing zone that is not read, such as a link that is not followed."""

    path: str
    why: str
    is_link: bool = False

    def __str__(self) -> str:
        return shown.line(f"{self.path} {self.why}")

    def refusal(self) -> PlatformError:
        entry = "a link" if self.is_link else "an entry of the landing zone"
        return (LinkRefused if self.is_link else PlatformError)(
            what=f"{entry} {self.why}",
            where=self.path,
            next_step="what it belongs to is not published; put data that can be read in its place, or remove it",
        )


def stray(link: str | os.PathLike[str], zone: str) -> Obstacle | None:
    """Return a link if it must not be followed."""
    target, path = os.path.realpath(link), os.fspath(link)
    if not _within(target, zone):
        why = _OUT
    elif not Path(target).exists():
        why = "leads to what does not exist:"
    elif _within(os.path.realpath(Path(path).parent), target):
        why = "leads to a folder that it lies in:"
    else:
        return None
    return Obstacle(path=path, why=f"{why} {target}", is_link=True)


def leading_out(file: Path, landing: Path) -> Obstacle | None:
    """Return the link through which a landed file's path leaves the landing zone, or the path itself without one."""
    zone = os.path.realpath(landing)
    if _within(os.path.realpath(file), zone):
        return None
    way = [parent for parent in (file, *file.parents) if landing in parent.parents]
    links = (stray(step, zone) for step in reversed(way) if step.is_symlink())
    # Without a link it is the path itself that leads out, such as by `..`.
    itself = Obstacle(path=os.fspath(file), why=f"{_OUT} {os.path.realpath(file)}", is_link=True)
    return next((link for link in links if link is not None), itself)


def require_within(files: Iterable[Path], landing: Path) -> None:
    """Refuse files whose path, for reading or writing, leaves the landing zone through a link."""
    for file in files:
        link = leading_out(file, landing)
        if link is not None:
            raise link.refusal()


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)
