import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import psycopg
import pytest
from cryptography import x509

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
    renewed = known.key("a").read_bytes()
    assert (renewed != before, known.certificate("authority").read_bytes()) == (True, authority)
    assert issuer(known.certificate("a")) == issuer(known.certificate("server")) == "CN=authority"
    assert known.folder.stat().st_mode & 0o077 == 0
    assert {file.stat().st_mode & 0o777 for file in known.folder.rglob("*") if file.is_file()} == {0o600}
    # A stolen key is locked out at once by another authority.
    known.certificate("authority").unlink()
    keep(known, NOW + DAY)
    assert known.key("a").read_bytes() != renewed


@pytest.fixture
def certified(settings: Settings, tmp_path: Path) -> Iterator[Settings]:
    """A deployment whose own PostgreSQL takes certificates."""
    folders: Any = {"home": tmp_path, "landing": tmp_path / "landing", "lake": tmp_path / "lake"}
    own = replace(settings, **folders, postgres=PostgresSettings(login="certificate"))
    try:
        postgres.binaries_with_tls()
    except PlatformError as missing:
        pytest.skip(f"{missing.what}: {missing.next_step}")
    yield own
    postgres.stop(own)


def url_of(settings: Settings, login: str, **changed: str) -> str:
    port = urlsplit(postgres.running_address(settings).url).port
    assert port is not None
    parts = urlsplit(postgres.certified_address(settings, login, port, "blogdata"))
    query = {**dict(parse_qsl(parts.query)), **changed}
    return parts._replace(query="&".join(f"{name}={value}" for name, value in query.items() if value)).geturl()


def who(url: str) -> tuple[str, bool, bool]:
    """Connect; return the user, whether TLS is used, and whether a password was."""
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT current_user, ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()").fetchone()
        assert row is not None
        return str(row[0]), bool(row[1]), connection.pgconn.used_password


def refused(url: str) -> str:
    with pytest.raises(PostgresUnreachable, match="no connection by certificate") as error:
        postgres_connection.connected(url).__enter__()
    return error.value.what


def files_of(known: Certificates, login: str) -> dict[str, str]:
    return {"sslcert": str(known.certificate(login)), "sslkey": str(known.key(login))}


def test_a_login_shows_its_certificate_and_no_password(certified: Settings, tmp_path: Path) -> None:
    postgres.up(certified)
    address = postgres.running_address(certified)
    assert (address.password, urlsplit(address.url).password) == (None, None)
    assert who(address.complete()) == (WRITER, True, False)
    assert postgres.status(certified).state == "running"
    with psycopg.connect(postgres.up(certified)) as connection:
        hashed = connection.execute("SELECT count(rolpassword) FROM pg_authid WHERE rolname ~ '^blogdata_'").fetchone()
    assert hashed == (0,), "no login of a role has a password"

    known = postgres.certificates(certified)
    ended = replace(known, folder=tmp_path / "ended", logins=(WRITER,))
    shutil.copytree(known.folder, ended.folder)
    ended.certificate("server").unlink()
    keep(ended, datetime.now(timezone.utc) - VALID - DAY)
    stranger = Certificates(folder=tmp_path / "stranger", hosts=("127.0.0.1",), logins=(WRITER,))
    keep(stranger, datetime.now(timezone.utc))
    cases: list[tuple[dict[str, str], str]] = [
        (files_of(known, ANALYST), "certificate authentication failed"),
        (files_of(stranger, WRITER), "unknown ca"),
        (files_of(ended, WRITER), "certificate expired"),
        ({"sslrootcert": str(stranger.certificate("authority"))}, "certificate verify failed"),
        ({"sslcert": "", "sslkey": ""}, ""),
        ({"sslcert": "", "sslkey": "", "password": "guessed"}, ""),
        ({"sslmode": "disable"}, ""),
    ]
    for changed, reason in cases:
        assert reason in refused(url_of(certified, WRITER, **changed)), changed


def test_old_certificates_hold_until_their_end(
    certified: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    postgres.up(certified)
    known = postgres.certificates(certified)
    pid = postgres.status(certified).pid
    shutil.copytree(known.folder, tmp_path / "old")
    kept = replace(known, folder=tmp_path / "old")
    old = {**files_of(kept, ANALYST), "sslrootcert": str(kept.certificate("authority"))}
    monkeypatch.setattr(secretless_connector, "RENEWED_BEFORE", VALID)
    postgres.up(certified)
    assert known.key(ANALYST).read_bytes() != Path(old["sslkey"]).read_bytes()
    assert who(url_of(certified, ANALYST, **old)) == who(url_of(certified, ANALYST)) == (ANALYST, True, False)
    assert postgres.status(certified).pid == pid, "it has read its files, and was not started anew"
