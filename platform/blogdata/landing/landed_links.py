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
_NOWHERE = "leads to what does not exist:"
_ROUND = "leads to a folder that it lies in:"


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
        if self.is_link:
            return LinkRefused(
                what=f"a link {self.why}",
                where=self.path,
                next_step="nothing was read through it, and what it belongs to is not published; put the data "
                "themselves into its place, under a hidden name that is then renamed, or remove the link",
            )
        return PlatformError(
            what=f"an entry of the landing zone {self.why}",
            where=self.path,
            next_step="what it belongs to is not published; make it readable, give it another name, or remove it",
        )


def stray(link: str | os.PathLike[str], zone: str) -> Obstacle | None:
    """Return a link if it must not be followed."""
    target, path = os.path.realpath(link), os.fspath(link)
    if not _within(target, zone):
        return Obstacle(path=path, why=f"{_OUT} {target}", is_link=True)
    if not Path(target).exists():
        return Obstacle(path=path, why=f"{_NOWHERE} {target}", is_link=True)
    if _within(os.path.realpath(Path(path).parent), target):
        return Obstacle(path=path, why=f"{_ROUND} {target}", is_link=True)
    return None


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
