"""Faults of Dagster's own storage, named for what they are: a full disk, a folder that cannot be written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy.exc import OperationalError

from errors import PlatformError


class StorageFailed(PlatformError):
    """Dagster cannot read or write what it keeps of its runs."""


@contextmanager
def named(home: Path) -> Iterator[None]:
    """Name a fault of the storage.

    Args:
        home: Dagster's home, for the message.

    Raises:
        StorageFailed: The storage failed inside.
    """
    try:
        yield
    except OperationalError as error:
        raise StorageFailed(
            what=f"Dagster's storage cannot be read or written: {error.orig}",
            where=str(home),
            next_step="free space on the disk and run it again; what was published stays, the rest runs then",
        ) from error
