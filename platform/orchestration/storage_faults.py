"""Translates errors of Dagster's own storage, such as a full disk or a read-only folder, to platform errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy.exc import OperationalError

from errors import PlatformError


class StorageFailed(PlatformError):
    """Raised when Dagster cannot read or write its run storage."""


@contextmanager
def translated(home: Path) -> Iterator[None]:
    """Translate storage errors inside the block to :class:`StorageFailed`.

    Args:
        home: Dagster's home folder, for the message.

    Raises:
        StorageFailed: Dagster's storage failed inside the block.
    """
    try:
        yield
    except OperationalError as error:
        raise StorageFailed(
            what=f"Dagster's storage cannot be read or written: {error.orig}",
            where=str(home),
            next_step="free space on the disk and run it again; what was published stays, the rest runs then",
        ) from error
