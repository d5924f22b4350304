"""Logins of PostgreSQL show certificates and no password; old certificates are accepted until their end."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from blogdata.errors import PlatformError
from blogdata.operate import postgres, postgres_connection
from blogdata.operate.config import PostgresSettings, Settings
from blogdata.operate.postgres import WRITER
from blogdata.operate.postgres_connection import PostgresUnreachable
from blogdata.patterns.security import secretless_connector
from blogdata.patterns.security.secretless_connector import RENEWED_BEFORE, VALID, Certificates, keep

NOW = datetime(2026, 1, 5, 10, tzinfo=timezone.utc)
DAY = timedelta(days=1)
ANALYST = "blogdata_analyst"


@pytest.fixture
def known(tmp_path: Path) -> Certificates:
    """Certificates of two logins, none made yet."""
    return Certificates(folder=tmp_path / "certificates", hosts=("127.0.0.1", "db.example.org"), logins=("a", "b"))


def issuer(file: Path) -> str:
    """Return the authority of a certificate, without what makes it another one than a stranger's."""
    return x509.load_pem_x509_certificate(file.read_bytes()).issuer.rfc4514_string().rpartition(" ")[0]


def test_certificates_are_made_once_for_their_owner_only_and_renewed_by_one_authority(known: Certificates) -> None:
    keep(known, NOW)
    before, authority = known.key("a").read_bytes(), known.certificate("authority").read_bytes()
    keep(known, NOW + VALID - RENEWED_BEFORE - DAY)
    assert known.key("a").read_bytes() == before
    assert known.end() == NOW + VALID
    keep(known, NOW + VALID - RENEWED_BEFORE)
    assert known.key("a").read_bytes() != before
    assert known.certificate("authority").read_bytes() == authority
    assert issuer(known.certificate("a")) == issuer(known.certificate("server")) == "CN=authority"
    assert known.folder.stat().st_mode & 0o077 == 0
    assert {file.stat().st_mode & 0o777 for file in known.folder.rglob("*") if file.is_file()} == {0o600}


def test_who_has_a_key_is_locked_out_at_once(known: Certificates) -> None:
    keep(known, NOW)
    before = known.key("a").read_bytes()
    known.certificate("authority").unlink()
    keep(known, NOW + DAY)
    assert known.key("a").read_bytes() != before


@pytest.fixture
def certified(settings: Settings, tmp_path: Path) -> Iterator[Settings]:
    """A deployment whose own PostgreSQL takes certificates."""
    own = replace(
        settings,
        home=tmp_path,
        landing=tmp_path / "landing",
        lake=tmp_path / "lake",
        postgres=PostgresSettings(login="certificate"),
    )
    try:
        postgres.binaries_with_tls()
    except PlatformError as missing:
        pytest.skip(f"{missing.what}: {missing.next_step}")
    yield own
    postgres.stop(own)


def url_of(settings: Settings, login: str, **changed: str) -> str:
    """Return the address of the server for a login, with other parameters."""
    known = urlsplit(postgres.running_address(settings).url)
    assert known.port is not None
    parts = urlsplit(postgres.certified_address(settings, login, known.port, "blogdata"))
    query = {**{name: values[0] for name, values in parse_qs(parts.query).items()}, **changed}
    return parts._replace(query="&".join(f"{name}={value}" for name, value in query.items() if value)).geturl()


def who(url: str) -> tuple[str, bool, bool]:
    """Connect; return the user, whether TLS is used, and whether a password was."""
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT current_user, ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()").fetchone()
        assert row is not None
        return str(row[0]), bool(row[1]), connection.pgconn.used_password


def refused(url: str) -> PostgresUnreachable:
    """Connect, and be refused."""
    with pytest.raises(PostgresUnreachable) as error, postgres_connection.connected(url):
        pass
    return error.value


def files_of(known: Certificates, login: str) -> dict[str, str]:
    """Return the parameters of an address for a consumer with files of its own."""
    return {
        "sslcert": str(known.certificate(login)),
        "sslkey": str(known.key(login)),
        "sslrootcert": str(known.certificate("authority")),
    }


def ended_certificate(settings: Settings, folder: Path) -> dict[str, str]:
    """Make a certificate of the deployment's authority that has ended."""
    current = postgres.certificates(settings)
    authority = x509.load_pem_x509_certificate(current.certificate("authority").read_bytes())
    signing = serialization.load_pem_private_key(current.key("authority").read_bytes(), None)
    ended = datetime.now(timezone.utc) - VALID - DAY
    made = secretless_connector._signed(WRITER, (authority, signing), ended, VALID, ())  # type: ignore[arg-type]
    folder.mkdir()
    secretless_connector._store(folder, WRITER, *made)
    return {"sslcert": str(folder / f"{WRITER}.pem"), "sslkey": str(folder / f"{WRITER}.key")}


def test_a_login_shows_its_certificate_and_no_password(certified: Settings, tmp_path: Path) -> None:
    postgres.up(certified)
    address = postgres.running_address(certified)
    assert (address.password, urlsplit(address.url).password) == (None, None)
    assert who(address.complete()) == (WRITER, True, False)
    assert postgres.status(certified).state == "running"
    with psycopg.connect(postgres.up(certified)) as connection:
        hashed = connection.execute("SELECT count(rolpassword) FROM pg_authid WHERE rolname ~ '^blogdata_'").fetchone()
    assert hashed == (0,), "no login of a role has a password"

    another = {"sslcert": str(postgres.certificates(certified).certificate(ANALYST))}
    another["sslkey"] = another["sslcert"].replace(".pem", ".key")
    ended = ended_certificate(certified, tmp_path / "ended")
    stranger = Certificates(folder=tmp_path / "stranger", hosts=("127.0.0.1",), logins=(WRITER,))
    keep(stranger, datetime.now(timezone.utc))
    foreign = files_of(stranger, WRITER)
    said = {
        "another login's": refused(url_of(certified, WRITER, **another)),
        "none": refused(url_of(certified, WRITER, sslcert="", sslkey="")),
        "a password": refused(url_of(certified, WRITER, sslcert="", sslkey="", password="guessed")),
        "no TLS": refused(url_of(certified, WRITER, sslmode="disable")),
        "a stranger's": refused(url_of(certified, WRITER, sslcert=foreign["sslcert"], sslkey=foreign["sslkey"])),
        "an ended one": refused(url_of(certified, WRITER, **ended)),
        "a stranger's server": refused(url_of(certified, WRITER, sslrootcert=foreign["sslrootcert"])),
    }
    for case, error in said.items():
        assert "no connection by certificate" in error.what, case
        assert "certificates" in error.next_step, case
    assert "certificate authentication failed" in said["another login's"].what
    assert "unknown ca" in said["a stranger's"].what
    assert "certificate expired" in said["an ended one"].what
    assert "certificate verify failed" in said["a stranger's server"].what


def test_old_certificates_hold_until_their_end(
    certified: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    postgres.up(certified)
    known = postgres.certificates(certified)
    pid = postgres.status(certified).pid
    shutil.copytree(known.folder, tmp_path / "old")
    old = files_of(replace(known, folder=tmp_path / "old"), ANALYST)
    monkeypatch.setattr(secretless_connector, "RENEWED_BEFORE", VALID)
    postgres.up(certified)
    assert known.key(ANALYST).read_bytes() != Path(old["sslkey"]).read_bytes()
    assert who(url_of(certified, ANALYST, **old)) == who(url_of(certified, ANALYST)) == (ANALYST, True, False)
    assert postgres.status(certified).pid == pid, "it has read its files, and was not started anew"
