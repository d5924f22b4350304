"""What moves rows beside the publications of datasets: loads that land them.

Each is declared by how its source changes, by what is killed, and by what readers have to find once it is done.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from blogdata.services import config
from blogdata.services.config import Settings
from lineage.expected_ads import Row


@dataclass(frozen=True, kw_only=True)
class Places:
    """Where what a mover needs is made.

    Args:
        folder: A new folder.
        database: Returns the address of an empty database.
    """

    folder: Path
    database: Callable[[], str]


@dataclass(frozen=True, kw_only=True)
class Mover(ABC):
    """One that moves rows. The first value of a row is the part in which it appears.

    Args:
        home: Home of its deployment.
    """

    name: ClassVar[str]
    home: Path

    @classmethod
    @abstractmethod
    def made(cls, places: Places) -> Mover:
        """Make one whose source has rows; nothing is moved yet."""

    @abstractmethod
    def change(self, dice: random.Random) -> None:
        """Change the source as those do who write there."""

    @abstractmethod
    def work(self) -> None:
        """Move what there is to move; called in a process of its own."""

    @abstractmethod
    def wanted(self) -> Counter[Row]:
        """Count the rows that readers have to find, in the source."""

    @abstractmethod
    def found(self) -> Counter[Row]:
        """Count the rows that readers find."""

    @property
    @abstractmethod
    def folder(self) -> Path:
        """The folder in which readers find them."""

    def problems(self) -> list[str]:
        """List what is wrong besides, once the work is done."""
        left = [path for path in self.folder.rglob(".*") if path.is_dir() or path.suffix == ".partial"]
        return [f"{path} was left" for path in left]

    @property
    def settings(self) -> Settings:
        """Settings of its deployment."""
        return config.load(overrides={"BLOGDATA_HOME": str(self.home)})
