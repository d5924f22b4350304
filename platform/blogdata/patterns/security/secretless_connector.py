"""Secretless Connector: a client shows who it is by a certificate, and no password is asked for.

Problem: a password has to be stored, fetched, and replaced in two places at once; a stolen one is valid until then.
How it works: an authority of the deployment signs a certificate for the server and one for each login
(:func:`keep`), in the login's name. The server accepts a login only with its certificate of the authority; the clients
accept only a server with a certificate of the authority for its address (`verify-full`). Keys never leave the folder,
and are readable by their owner only.

The authority lasts. A month before they expire, certificates are replaced by others of the same authority; until then
the old ones are accepted, too, so a consumer has a month to fetch the new ones.
The trap: an authority that is replaced locks out every consumer at once, and a certificate that is never replaced
expires on a day nobody thinks of.
When not to use it: where the server cannot speak TLS, or is another team's, which signs with its own authority; then
its certificate is a file that the address names.
Source: Data Engineering Design Patterns, ch. 7.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from blogdata.files import write_atomically

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.x509 import Certificate, ExtensionType

AUTHORITY, SERVER = "authority", "server"
LASTING, VALID, RENEWED_BEFORE = timedelta(days=3650), timedelta(days=90), timedelta(days=30)
"""How long the authority and its certificates are valid, and how long before their end the next ones are made."""
_SKEW = timedelta(minutes=5)
"""By how much the clocks of two machines may differ."""


@dataclass(frozen=True, kw_only=True)
class Certificates:
    folder: Path
    hosts: tuple[str, ...]
    logins: tuple[str, ...]

    def certificate(self, name: str) -> Path:
        return self.folder / f"{name}.pem"

    def key(self, name: str) -> Path:
        return self.folder / f"{name}.key"

    def end(self) -> datetime:
        from cryptography import x509

        return x509.load_pem_x509_certificate(self.certificate(SERVER).read_bytes()).not_valid_after_utc


def keep(certificates: Certificates, now: datetime) -> None:
    """Make an authority if there is none; make certificates if the authority is new, or the old ones end soon."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import load_pem_private_key
    from cryptography.x509.oid import ExtendedKeyUsageOID

    folder = certificates.folder
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not certificates.certificate(AUTHORITY).exists():
        # A process that dies here leaves none that is of another authority.
        certificates.certificate(SERVER).unlink(missing_ok=True)
        rights = [x509.BasicConstraints(ca=True, path_length=0)]
        _store(folder, AUTHORITY, *_signed(f"{AUTHORITY} {token_hex(4)}", None, now, LASTING, rights))
    if certificates.certificate(SERVER).exists() and now < certificates.end() - RENEWED_BEFORE:
        return
    authority = x509.load_pem_x509_certificate(certificates.certificate(AUTHORITY).read_bytes())
    by: Any = authority, load_pem_private_key(certificates.key(AUTHORITY).read_bytes(), None)
    names: list[ExtensionType] = [x509.SubjectAlternativeName([_host(host) for host in certificates.hosts])]
    # The server's is the last one: by its end the next call sees whether all were made.
    for name in (*certificates.logins, SERVER):
        use = ExtendedKeyUsageOID.SERVER_AUTH if name == SERVER else ExtendedKeyUsageOID.CLIENT_AUTH
        extensions = [x509.ExtendedKeyUsage([use]), *(names if name == SERVER else [])]
        _store(folder, name, *_signed(name, by, now, VALID, extensions))


def _signed(
    name: str,
    by: tuple[Certificate, EllipticCurvePrivateKey] | None,
    now: datetime,
    valid: timedelta,
    extensions: Iterable[ExtensionType],
) -> tuple[Certificate, EllipticCurvePrivateKey]:
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
        .not_valid_after(now + valid)
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

    write_atomically(folder / f"{name}.key", key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    write_atomically(folder / f"{name}.pem", certificate.public_bytes(Encoding.PEM))
