"""A connection to a PostgreSQL server, whoever runs it, and the faults that one can have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from blogdata.errors import PlatformError
from blogdata.errors.remedies import Remedy, Run, ShowService

if TYPE_CHECKING:
    import psycopg

_PROBE_SECONDS = 5.0


class PostgresUnreachable(PlatformError):
    """Raised when the server does not answer, or the connection is lost."""

    transient = True


class PostgresRefused(PlatformError):
    """Raised when the server rejects a statement for a permanent reason, for instance a full disk."""


class PostgresBusy(PlatformError):
    """Raised when other clients are in the way: a deadlock, a lock, or too many connections."""

    transient = True


@contextmanager
def connected(url: str) -> Iterator[psycopg.Connection]:
    """Connect, and translate operational errors into this module's exceptions.

    Args:
        url: Address of the server.

    Yields:
        A connection; an error inside the context rolls back the open transaction.

    Raises:
        PostgresUnreachable: The server cannot be reached, or the connection is lost inside the context; transient.
        PostgresBusy: A deadlock, a lock or too many connections were in the way; transient.
        PostgresRefused: The server's disk is full, or another of its limits is reached.
    """
    import psycopg

    try:
        with psycopg.connect(url, connect_timeout=int(_PROBE_SECONDS)) as connection:
            yield connection
    except psycopg.OperationalError as error:
        raise _translated(error, url) from error


def _translated(error: psycopg.OperationalError, url: str) -> PlatformError:
    code, where, said = error.sqlstate or "", without_password(url), str(error).strip().partition("\n")[0]
    if is_lost(code):
        step = Remedy("see whether it runs: ", ShowService(name="postgres"), "; what was not committed is not there")
        said = f"PostgreSQL does not answer, or went away: {said}"
        return PostgresUnreachable(what=said, where=where, next_step=step)
    if code.startswith("40") or code in ("53300", "55P03"):
        step = Remedy("nothing of it was committed; it is retried, or run it again")
        return PostgresBusy(what=f"PostgreSQL is busy with others: {said}", where=where, next_step=step)
    what, mend = "PostgreSQL could not do it", f"its log says more of {code}; mend that"
    if code == "53100":
        what, mend = "the disk of PostgreSQL is full", "free space for it"
    step = Remedy(f"nothing of it was committed; {mend}, then: ", Run())
    return PostgresRefused(what=f"{what}: {said}", where=where, next_step=step)


def is_lost(code: str) -> bool:
    """Tell whether an operational error means that the server is gone, by its SQLSTATE.

    Args:
        code: The SQLSTATE; empty for errors that the client detects itself.
    """
    return not code or code.startswith(("08", "57P"))


def without_password(url: str) -> str:
    """Return an address without its password, fit for messages."""
    from psycopg.conninfo import conninfo_to_dict

    parts = {name: str(value) for name, value in conninfo_to_dict(url).items()}
    place = f"{parts.get('host', 'localhost')}:{parts.get('port', '5432')}"
    return f"postgresql://{parts.get('user', '')}@{place}/{parts.get('dbname', '')}"


def probe(url: str) -> str:
    """Return the version of the server at an address.

    Raises:
        PostgresUnreachable: It does not answer; transient.
    """
    with connected(url) as connection:
        row = connection.execute("SHOW server_version").fetchone()
    assert row is not None
    return str(row[0])
