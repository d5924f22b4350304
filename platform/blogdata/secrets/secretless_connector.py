"""Secretless Connector: a client shows who it is by a certificate, and no password is asked for.

Problem: a password has to be stored, fetched, replaced in two places at once, and whoever reads it once has it until
then. A server that knows whom it trusts needs none.

How it works: an authority of the deployment signs a certificate for the server and one for each login
(:func:`keep`), whose name is the login's. The server takes clients with a certificate of the authority under that name
and nobody else; the clients take a server with a certificate of the authority for its address and no other one
(`verify-full`). Keys never leave the folder, and are readable by their owner only.

Certificates end, and are replaced before: authority, server and logins together are a :class:`Generation`. While the
grace period of a new one lasts, both sides trust the authorities of both, and the server shows the certificate of the
old one, because a consumer that has not fetched the new files trusts nothing else. Then the old generation is removed,
and its clients are refused. What is current follows from the files, so that nothing else has to be remembered.

The trap: to forget that work is left. An authority that is replaced in one moment locks out every consumer that still
has the old files, and one that is never replaced ends on a day nobody thinks of.

When not to use it: where the server cannot speak TLS, or where it is another team's who signs with its own authority;
then its certificate is a file that the address names.

Source: Data Engineering Design Patterns, ch. 7.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from blogdata.durable.whole_file import write_atomically

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.x509 import Certificate, ExtensionType

AUTHORITY, SERVER = "authority", "server"
VALID, RENEWED_BEFORE, GRACE = timedelta(days=90), timedelta(days=30), timedelta(days=7)
"""How long a generation is valid, how long before its end the next one is made, and how long both are trusted."""
_SKEW = timedelta(minutes=5)
"""By how much the clocks of two machines may differ."""


@dataclass(frozen=True, kw_only=True)
class Generation:
    """An authority and the certificates that it has signed."""

    folder: Path
    made: datetime

    @property
    def ends(self) -> datetime:
        return self.made + VALID

    def certificate(self, name: str) -> Path:
        return self.folder / f"{name}.pem"

    def key(self, name: str) -> Path:
        return self.folder / f"{name}.key"


@dataclass(frozen=True, kw_only=True)
class Certificates:
    """The certificates of a server and its logins."""

    folder: Path
    hosts: tuple[str, ...]
    logins: tuple[str, ...]

    @property
    def authorities(self) -> Path:
        return self.folder / "authorities.pem"

    def generations(self) -> list[Generation]:
        folders = [each for each in self.folder.glob("[0-9]*") if each.name.isdecimal()]
        return [
            Generation(folder=folder, made=_made(folder / f"{AUTHORITY}.pem"))
            for folder in sorted(folders, key=lambda each: int(each.name))
        ]

    def current(self) -> Generation:
        return self.generations()[-1]


def keep(certificates: Certificates, now: datetime) -> None:
    """Make a generation if there is none, or the newest one ends soon; remove those whose grace period is over."""
    certificates.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    there = certificates.generations()
    if not there or now >= there[-1].ends - RENEWED_BEFORE:
        _make(certificates, int(there[-1].folder.name) + 1 if there else 1, now)
    for ended in [one for one, until in lasting(certificates)[:-1] if now >= until]:
        shutil.rmtree(ended.folder)
    trusted = certificates.generations()
    shown = trusted[0]
    authorities = b"".join(one.certificate(AUTHORITY).read_bytes() for one in trusted)
    write_atomically(certificates.authorities, authorities)
    write_atomically(certificates.folder / f"{SERVER}.key", shown.key(SERVER).read_bytes())
    write_atomically(certificates.folder / f"{SERVER}.pem", shown.certificate(SERVER).read_bytes())


def lasting(certificates: Certificates) -> list[tuple[Generation, datetime]]:
    """List the generations, the newest last, each with when it is no longer accepted."""
    found = certificates.generations()
    newer = [*found[1:], None][: len(found)]
    return [
        (one, one.ends if later is None else min(one.ends, later.made + GRACE))
        for one, later in zip(found, newer, strict=True)
    ]


def _make(certificates: Certificates, number: int, now: datetime) -> None:
    from cryptography import x509
    from cryptography.x509.oid import ExtendedKeyUsageOID

    unfinished = Path(tempfile.mkdtemp(dir=certificates.folder, prefix=".unfinished."))
    authority, signing = _signed(
        f"{AUTHORITY} {number} {token_hex(4)}", None, now, [x509.BasicConstraints(ca=True, path_length=0)]
    )
    _store(unfinished, AUTHORITY, authority, signing)
    names = x509.SubjectAlternativeName([_host(host) for host in certificates.hosts])
    clients = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
    of_server: list[ExtensionType] = [names, x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])]
    _store(unfinished, SERVER, *_signed(SERVER, (authority, signing), now, of_server))
    for login in certificates.logins:
        _store(unfinished, login, *_signed(login, (authority, signing), now, [clients]))
    unfinished.rename(certificates.folder / str(number))


def _signed(
    name: str,
    by: tuple[Certificate, EllipticCurvePrivateKey] | None,
    now: datetime,
    extensions: Iterable[ExtensionType],
) -> tuple[Certificate, EllipticCurvePrivateKey]:
    """Make a key and its certificate, signed by an authority or, without one, by itself."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(by[0].subject if by else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + VALID)
    )
    for extension in extensions:
        builder = builder.add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
    return builder.sign(by[1] if by else key, hashes.SHA256()), key


def _host(name: str) -> Any:
    from cryptography import x509

    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _store(folder: Path, name: str, certificate: Certificate, key: EllipticCurvePrivateKey) -> None:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    write_atomically(folder / f"{name}.pem", certificate.public_bytes(Encoding.PEM))
    write_atomically(folder / f"{name}.key", key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


def _made(authority: Path) -> datetime:
    from cryptography import x509

    return x509.load_pem_x509_certificate(authority.read_bytes()).not_valid_before_utc + _SKEW
