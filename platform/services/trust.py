"""A trust store for Java made from the certificates the rest of the machine trusts.

A Java that comes in a package knows the public authorities only, so a machine whose network has an authority
of its own cannot fetch anything with it. The Java KeyStore format is small enough to be written here, and
needs no `keytool`, which costs half a second for each certificate.

Source of the format: JDK, `sun.security.provider.JavaKeyStore` (magic, version, entries, salted SHA-1).
"""

from __future__ import annotations

import hashlib
import re
import ssl
import struct
from pathlib import Path

from services.files import write_atomically

PASSWORD = "changeit"
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)


def java_options(bundle: Path | None, folder: Path) -> list[str]:
    """Options that make a Java trust a bundle of certificates.

    Args:
        bundle: Certificates in PEM, or None to leave Java as it is.
        folder: Where the trust store is written.

    Returns:
        Options for the `java` command; none without a bundle or when it holds no certificate.
    """
    if bundle is None:
        return []
    certificates = _CERTIFICATE.findall(bundle.read_text(encoding="ascii", errors="replace"))
    if not certificates:
        return []
    store = folder / "trust.jks"
    write_atomically(store, key_store([ssl.PEM_cert_to_DER_cert(text) for text in certificates]))
    return [
        f"-Djavax.net.ssl.trustStore={store}",
        "-Djavax.net.ssl.trustStoreType=JKS",
        f"-Djavax.net.ssl.trustStorePassword={PASSWORD}",
    ]


def key_store(certificates: list[bytes]) -> bytes:
    """Build a Java KeyStore of trusted certificates.

    Args:
        certificates: Each in DER.

    Returns:
        The bytes of the store, protected by :data:`PASSWORD` against corruption only.
    """
    content = struct.pack(">III", 0xFEEDFEED, 2, len(certificates))
    for number, certificate in enumerate(certificates):
        content += struct.pack(">I", 2) + _text(f"authority-{number}") + struct.pack(">Q", 0)
        content += _text("X.509") + struct.pack(">I", len(certificate)) + certificate
    salted = PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite" + content
    return content + hashlib.sha1(salted, usedforsecurity=False).digest()


def _text(value: str) -> bytes:
    return struct.pack(">H", len(value)) + value.encode("ascii")
