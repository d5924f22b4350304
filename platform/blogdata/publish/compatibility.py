"""The migrations of a dataset's schema, which allow what would break its readers otherwise."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import date, timedelta

from blogdata.publish.schema import Subject


@dataclass(frozen=True, kw_only=True)
class Migration(ABC):
    """The retirement of a column: for a grace period both it and its successor are written, then it is removed."""

    old: str
    since: date
    grace: timedelta

    @property
    def ends(self) -> date:
        """First day on which the old column may be removed."""
        return self.since + self.grace

    @property
    def successor(self) -> str | None:
        """The column that replaces it; None if nothing does."""
        return None

    @property
    def replacement(self) -> str | None:
        """The column that its readers read instead, of this dataset or of another; None if none has the values."""
        return self.successor

    @property
    def forth(self) -> str | None:
        """SQL expression that computes the new column from the old one; None if there is no new one."""
        return None

    @property
    @abstractmethod
    def back(self) -> str:
        """SQL expression that computes the old column without the asset's help."""

    @abstractmethod
    def __str__(self) -> str:
        """What is done, as it follows "the time to"."""


@dataclass(frozen=True, kw_only=True)
class Rename(Migration):
    """The same values under another name."""

    new: str

    @property
    def successor(self) -> str:
        return self.new

    @property
    def forth(self) -> str:
        return f"`{self.old}`"

    @property
    def back(self) -> str:
        return f"`{self.new}`"

    def __str__(self) -> str:
        return f"rename {self.old} to {self.new}"


@dataclass(frozen=True, kw_only=True)
class Retype(Migration):
    """The same facts in another type, which needs another column: a table's column keeps its type."""

    new: str
    new_from_old: str
    old_from_new: str

    @property
    def successor(self) -> str:
        return self.new

    @property
    def forth(self) -> str:
        return self.new_from_old

    @property
    def back(self) -> str:
        return self.old_from_new

    def __str__(self) -> str:
        return f"change the type of {self.old}, as {self.new}"


@dataclass(frozen=True, kw_only=True)
class Remove(Migration):
    """The column goes, and no other column of the dataset replaces it.

    Args:
        meanwhile: SQL expression of the value that is written from the day on which the contract no longer has the
            column until the table has lost it, unless the asset still computes it.
        subject: Whom the column identifies, and how; a table that still has it hides it from consumers by that.
        instead: Another dataset or view that has its values, as `layer.table`; empty if none has.
    """

    meanwhile: str = "NULL"
    subject: Subject | None = None
    instead: str = ""

    @property
    def back(self) -> str:
        return self.meanwhile

    @property
    def replacement(self) -> str | None:
        return f"{self.instead}.{self.old}" if self.instead else None

    def __str__(self) -> str:
        return f"remove {self.old}"
