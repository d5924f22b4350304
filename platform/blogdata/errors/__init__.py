"""Errors that tell a person what happened, where, and what to do next.

Whether running the same work again can help is part of the class (``transient``): no retry guesses from a message.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar

from blogdata.errors import shown
from blogdata.errors.remedies import Diagnose, Remedy, ShowRights


class PlatformError(Exception):
    """A fault with its place and its remedy; its texts can be shown anywhere as they are."""

    transient: ClassVar[bool] = False
    """True when the same work may succeed if it is simply run again."""
    exit_code: ClassVar[int] = 1
    partitions: frozenset[str] = frozenset()
    """The partitions at fault: without them the same work may succeed. Empty: unknown."""
    by_partition: Mapping[str, PlatformError] = MappingProxyType({})
    """The errors of single partitions at fault, where each has its own."""

    def __init__(self, *, what: str, where: str, next_step: str) -> None:
        self.what = shown.block(what)
        self.where = shown.line(where)
        self.remedy = Remedy(next_step)
        super().__init__(self.what)

    @property
    def next_step(self) -> str:
        return shown.block(self.remedy)

    def __str__(self) -> str:
        return f"{self.what}\n  where: {self.where}\n  next:  {self.next_step}"

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self).__new__, (type(self), self.what), self.__dict__)


class TransientError(PlatformError):
    """A fault that may be over when the same work is run again: a service that is busy, or did not start."""

    transient = True


class ConfigurationError(PlatformError):
    """Something the user set (an option, a file, an environment variable) cannot be used."""

    exit_code = 2


class DiskFull(PlatformError):
    def __init__(self, where: str) -> None:
        freed = Remedy("free space (see it by ", Diagnose(), ") and run it again; what was published stays")
        super().__init__(what="the disk is full", where=where, next_step=freed)


class LandedFileVanished(TransientError):
    """A landed file was deleted after it was listed and before it was read."""

    def __init__(self, file: str) -> None:
        what = "a landed file was taken away while it was about to be read"
        kept = "nothing was published of its partition; put the file back if it belongs there, and run it again"
        super().__init__(what=what, where=file, next_step=kept)


class LandedFileUnreadable(PlatformError):
    def __init__(self, file: str, why: str) -> None:
        kept = "nothing was published of its partition; land the file again, whole and readable, then run it again"
        super().__init__(what=f"a landed file cannot be read to its end: {why}", where=file, next_step=kept)


_FEW = 20
"""Most datasets that an error lists."""


def refuse_unknown(given: Sequence[str], known: Iterable[str], *, where: str, kind: str = "dataset") -> None:
    """Refuse names that do not exist."""
    names = list(known)
    unknown = sorted(set(given) - set(names))
    if unknown:
        too_many = kind == "dataset" and len(names) > _FEW
        choice = Remedy("see all of them: ", ShowRights()) if too_many else f"choose from: {', '.join(names)}"
        next_step = Remedy(similar(unknown, names), choice)
        raise ConfigurationError(what=f"no {kind} is called {', '.join(unknown)}", where=where, next_step=next_step)


def similar(unknown: Sequence[str], known: Sequence[str]) -> str:
    """Return the beginning of a next step: the names that were probably meant, or nothing."""
    from difflib import get_close_matches

    close = [match for name in unknown for match in get_close_matches(name, known, n=1, cutoff=0.8)]
    return f"did you mean {', '.join(close)}? Otherwise " if close else ""
