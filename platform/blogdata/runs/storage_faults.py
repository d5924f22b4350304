"""Translates errors of Dagster's own storage, such as a full disk or a lost database, to platform errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dagster_postgres.utils import DagsterPostgresException
from sqlalchemy.exc import DatabaseError, DBAPIError

from blogdata.errors import PlatformError
from blogdata.operate import dagster_home
from blogdata.operate.config import Settings


@contextmanager
def translated(settings: Settings) -> Iterator[None]:
    for file, problem in dagster_home.damaged(settings, whole=False):
        # Before Dagster is at work: it logs what it cannot store.
        raise _failed(problem, str(file), dagster_home.MENDED)
    try:
        yield
    except (DatabaseError, DagsterPostgresException) as error:
        cause = error if isinstance(error, DBAPIError) else error.__cause__
        problem = str(cause.orig if isinstance(cause, DBAPIError) else error).strip().partition("\n")[0]
        mend = dagster_home.MENDED if settings.dagster_storage is None else "mend it (the server's log says more)"
        raise _failed(problem, dagster_home.storage(settings), mend) from error


def _failed(problem: str, where: str, mend: str) -> PlatformError:
    return PlatformError(
        what=f"Dagster's storage cannot be read or written: {problem}",
        where=where,
        next_step=f"{mend}; then run it again: what was published stays, the rest runs then",
    )
