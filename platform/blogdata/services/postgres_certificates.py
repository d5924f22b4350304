"""Certificates in place of passwords for the deployment's own PostgreSQL, on a server that has TLS."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from urllib.parse import urlencode

from blogdata.durable.whole_file import write_atomically
from blogdata.errors import PlatformError
from blogdata.secrets.secretless_connector import SERVER, Certificates, keep
from blogdata.services.config import Settings
from blogdata.services.postgres_roles import LOGINS

SUPERUSER = "blogdata"
_DEBIAN = Path("/usr/lib/postgresql")
_ACCESS = "hostssl all all 127.0.0.1/32 cert\n"
"""Who is let in: over TLS, with a certificate of the login's name, and nobody else."""


def certificates(settings: Settings) -> Certificates:
    folder = settings.service_folder("postgres") / "certificates"
    return Certificates(folder=folder, hosts=("127.0.0.1", "localhost"), logins=(SUPERUSER, *LOGINS))


def kept(settings: Settings) -> str:
    """Make, renew and remove certificates as it is time; return a digest of the server's files."""
    known = certificates(settings)
    keep(known, datetime.now(timezone.utc))
    files = (known.authorities, *(known.folder / f"{SERVER}.{kind}" for kind in ("key", "pem")))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def options(settings: Settings) -> Mapping[str, str]:
    """Return what the server is started with, and write the file that says who is let in."""
    folder = certificates(settings).folder
    access = folder / "pg_hba.conf"
    write_atomically(access, _ACCESS.encode())
    return {
        "ssl": "on",
        "ssl_cert_file": str(folder / f"{SERVER}.pem"),
        "ssl_key_file": str(folder / f"{SERVER}.key"),
        "ssl_ca_file": str(certificates(settings).authorities),
        "hba_file": str(access),
    }


def address(settings: Settings, login: str, port: int, database: str) -> str:
    """Return the address of the server for a login: the certificates to show and to trust, and no password."""
    known = certificates(settings)
    current = known.current()
    files = {
        "sslmode": "verify-full",
        "sslrootcert": str(known.authorities),
        "sslcert": str(current.certificate(login)),
        "sslkey": str(current.key(login)),
    }
    return f"postgresql://{login}@127.0.0.1:{port}/{database}?{urlencode(files)}"


def binaries(settings: Settings) -> Path:
    """Return the folder of the programs of a PostgreSQL with TLS: Debian's newest, or that in the search path."""
    installed = sorted(_DEBIAN.glob("*/bin/postgres"), key=lambda each: float(each.parent.parent.name))
    found = shutil.which("postgres", path=settings.search_path)
    for program in (*reversed(installed), *([Path(found).resolve()] if found else [])):
        if (program.parent / "initdb").is_file():
            return program.parent
    raise PlatformError(
        what="certificates need a PostgreSQL with TLS, and none is installed; the one of the package has none",
        where="[postgres] login",
        next_step='run: apt-get install postgresql, or write login = "password"',
    )
