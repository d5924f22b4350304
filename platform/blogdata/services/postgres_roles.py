"""The roles of the deployment's own PostgreSQL: who owns the served tables, who writes, and who reads them.

Nobody of the platform's daily work is a superuser. The owner is no login: the writer becomes it to create and alter
tables. The writer passes policies of rows, because PostgreSQL refuses COPY to whom they apply, but no grant.
Each logs in by a password or, on a server that has TLS, by a certificate.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from blogdata.durable.whole_file import write_atomically
from blogdata.errors import PlatformError
from blogdata.secrets.secretless_connector import AUTHORITY, SERVER, Certificates, keep
from blogdata.services import secrets
from blogdata.services.config import Settings

if TYPE_CHECKING:
    import psycopg

PREFIX = "blogdata_"
OWNER, WRITER = f"{PREFIX}owner", f"{PREFIX}writer"
READERS = ("engineer", "analyst", "partner")
"""Roles of readers; their logins have the prefix."""
LOGINS = (WRITER, *(f"{PREFIX}{name}" for name in READERS))


def passwords(settings: Settings) -> Mapping[str, str]:
    return {login: secrets.read(settings, secret_of(login)).reveal() for login in LOGINS}


def secret_of(login: str) -> str:
    return f"postgres-{login.removeprefix(PREFIX)}"


def make(connection: psycopg.Connection, given: Mapping[str, str | None]) -> None:
    """Create the roles of a server, or correct their rights and passwords; a login without a password has None."""
    from psycopg import sql

    there = {name for (name,) in connection.execute("SELECT rolname FROM pg_roles")}
    for name in (OWNER, *given):
        role = sql.Identifier(name)
        if name not in there:
            connection.execute(sql.SQL("CREATE ROLE {}").format(role))
        kind = "NOLOGIN" if name == OWNER else "LOGIN BYPASSRLS NOINHERIT" if name == WRITER else "LOGIN NOBYPASSRLS"
        connection.execute(
            sql.SQL("ALTER ROLE {} NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION {}").format(role, sql.SQL(kind))
        )
    for name, password in given.items():
        # Hashed here: a statement that fails is in the server's log.
        hashed = (
            password and connection.pgconn.encrypt_password(password.encode(), name.encode(), b"scram-sha-256").decode()
        )
        query = sql.SQL("ALTER ROLE {} PASSWORD {}")
        connection.execute(query.format(sql.Identifier(name), sql.Literal(hashed)))
    # The writer does not inherit, as a role: PostgreSQL 15 knows no such option of a grant.
    grant = sql.SQL("GRANT {} TO {}")
    connection.execute(grant.format(sql.Identifier(OWNER), sql.Identifier(WRITER)))


def admit(connection: psycopg.Connection) -> None:
    """Let the roles into a database, and nobody else."""
    from psycopg import sql

    database = sql.Identifier(connection.info.dbname)
    connection.execute(sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(database))
    for name in LOGINS:
        connection.execute(sql.SQL("GRANT CONNECT ON DATABASE {} TO {}").format(database, sql.Identifier(name)))
    connection.execute(sql.SQL("GRANT CREATE ON DATABASE {} TO {}").format(database, sql.Identifier(OWNER)))


SUPERUSER = "blogdata"
_DEBIAN = Path("/usr/lib/postgresql")
_ACCESS = "hostssl all all 127.0.0.1/32 cert\n"
"""Who is let in: over TLS, with a certificate of the login's name, and nobody else."""


def certificates(settings: Settings) -> Certificates:
    folder = settings.service_folder("postgres") / "certificates"
    return Certificates(folder=folder, hosts=("127.0.0.1", "localhost"), logins=(SUPERUSER, *LOGINS))


def kept_certificates(settings: Settings) -> str:
    """Make and renew certificates as it is time; return a digest of the server's."""
    known = certificates(settings)
    keep(known, datetime.now(timezone.utc))
    return hashlib.sha256(known.certificate(SERVER).read_bytes()).hexdigest()


def certificate_options(settings: Settings) -> Mapping[str, str]:
    """Return what the server is started with, and write the file that says who is let in."""
    known = certificates(settings)
    access = known.folder / "pg_hba.conf"
    write_atomically(access, _ACCESS.encode())
    return {
        "ssl": "on",
        "ssl_cert_file": str(known.certificate(SERVER)),
        "ssl_key_file": str(known.key(SERVER)),
        "ssl_ca_file": str(known.certificate(AUTHORITY)),
        "hba_file": str(access),
    }


def certified_address(settings: Settings, login: str, port: int, database: str) -> str:
    """Return the address of the server for a login: the certificates to show and to trust, and no password."""
    known = certificates(settings)
    files = {
        "sslmode": "verify-full",
        "sslrootcert": str(known.certificate(AUTHORITY)),
        "sslcert": str(known.certificate(login)),
        "sslkey": str(known.key(login)),
    }
    return f"postgresql://{login}@127.0.0.1:{port}/{database}?{urlencode(files)}"


def binaries_with_tls() -> Path:
    """Return the folder of the programs of a PostgreSQL with TLS: Debian's newest, or that in the search path."""
    installed = sorted(_DEBIAN.glob("*/bin/postgres"), key=lambda each: float(each.parent.parent.name))
    found = shutil.which("postgres")
    for program in (*reversed(installed), *([Path(found).resolve()] if found else [])):
        if (program.parent / "initdb").is_file():
            return program.parent
    raise PlatformError(
        what="certificates need a PostgreSQL with TLS, and none is installed; the one of the package has none",
        where="[postgres] login",
        next_step='run: apt-get install postgresql, or write login = "password"',
    )
