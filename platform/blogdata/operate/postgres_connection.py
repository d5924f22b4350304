"""Connections to a PostgreSQL server, the deployment's own or another, and their faults."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from blogdata.errors import PlatformError, TransientError
from blogdata.errors.remedies import Remedy, Run, ShowService
from blogdata.patterns.security.secrets_pointer import Pointer, fetch

if TYPE_CHECKING:
    import psycopg

_PROBE_SECONDS = 5.0
_OF_CERTIFICATES = re.compile(r"\b(SSL|certificate|pg_hba\.conf)\b")


class PostgresUnreachable(PlatformError):
    """Raised when the server does not answer, or the connection is lost."""

    transient = True


@dataclass(frozen=True, kw_only=True)
class Address:
    """Where a database is, with the name of its password; None: none is asked for, or the address has it."""

    url: str
    password: Pointer | None = None

    def complete(self) -> str:
        """Return the address with the password, for a library that takes nothing else."""
        if self.password is None:
            return self.url
        password, parts = fetch(self.password), urlsplit(self.url)
        login, _, host = parts.netloc.rpartition("@")
        return parts._replace(netloc=f"{login.partition(':')[0]}:{quote(password.reveal(), safe='')}@{host}").geturl()


@contextmanager
def connected(address: str | Address) -> Iterator[psycopg.Connection]:
    """Connect, and translate operational errors into this module's exceptions; an error rolls back the transaction."""
    import psycopg

    known = address if isinstance(address, Address) else Address(url=address)
    try:
        with psycopg.connect(known.complete(), connect_timeout=int(_PROBE_SECONDS)) as connection:
            yield connection
    except psycopg.OperationalError as error:
        raise _translated(error, known) from error


def _translated(error: psycopg.OperationalError, address: Address) -> PlatformError:
    code, where, message = error.sqlstate or "", without_password(address.url), str(error).strip().partition("\n")[0]
    if error.pgconn is not None and error.pgconn.used_password and not error.sqlstate:
        place = "in the address" if address.password is None else str(address.password.file())
        next_step = f"see whether user, database and password are right: {place}"
        return PostgresUnreachable(what=f"PostgreSQL refuses the login: {message}", where=where, next_step=next_step)
    if not code and _OF_CERTIFICATES.search(message):
        look = "see which of the deployment's certificates the address names, and until when it is accepted: "
        step = Remedy(look, ShowService(name="postgres"))
        return PostgresUnreachable(what=f"no connection by certificate: {message}", where=where, next_step=step)
    if is_lost(code):
        look = f"see whether a server runs at {where}, and lets this machine in; the deployment's own: "
        what, step = f"PostgreSQL does not answer, or went away: {message}", Remedy(look, ShowService(name="postgres"))
        return PostgresUnreachable(what=what, where=where, next_step=step)
    if code.startswith("40") or code in ("53300", "55P03"):
        next_step = "nothing of it was committed; it is retried, or run it again"
        return TransientError(what=f"PostgreSQL is busy with others: {message}", where=where, next_step=next_step)
    what, mend = "PostgreSQL could not do it", f"its log says more of {code}; mend that"
    if code == "53100":
        what, mend = "the disk of PostgreSQL is full", "free space for it"
    step = Remedy(f"nothing of it was committed; {mend}, then: ", Run())
    return PlatformError(what=f"{what}: {message}", where=where, next_step=step)


def is_lost(code: str) -> bool:
    """Tell whether a SQLSTATE means that the server is gone; it is empty for errors that the client detects itself."""
    return not code or code.startswith(("08", "57P"))


def without_password(url: str) -> str:
    from psycopg.conninfo import conninfo_to_dict

    parts = {name: str(value) for name, value in conninfo_to_dict(url).items()}
    place = f"{parts.get('host', 'localhost')}:{parts.get('port', '5432')}"
    return f"postgresql://{parts.get('user', '')}@{place}/{parts.get('dbname', '')}"


def probe(address: str | Address) -> str:
    with connected(address) as connection:
        row = connection.execute("SHOW server_version").fetchone()
    assert row is not None
    return str(row[0])
