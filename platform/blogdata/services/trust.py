"""Builds a trust store for Java from the certificates that the machine trusts.

The bundled Java trusts only public certificate authorities, so it cannot fetch anything in a network with a private
authority. The Java KeyStore format is simple enough to be written here, without `keytool`, which takes half a
second for each certificate.

Source of the format: JDK, `sun.security.provider.JavaKeyStore` (magic, version, entries, salted SHA-1).
"""

from __future__ import annotations

import hashlib
import re
import ssl
import struct
from collections.abc import Mapping
from pathlib import Path

from blogdata.durable.whole_file import write_atomically

PASSWORD = "changeit"
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)


def bundle(env: Mapping[str, str]) -> Path | None:
    """Return the file of the certificates that the machine trusts; None without one."""
    usual = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem")
    for name in (env.get("SSL_CERT_FILE"), ssl.get_default_verify_paths().openssl_cafile, *usual):
        if name and Path(name).is_file():
            return Path(name)
    return None


def java_options(bundle: Path | None, folder: Path) -> list[str]:
    """Build the options that make Java trust a bundle of certificates.

    Args:
        bundle: Certificates in PEM; None keeps Java's own trust store.

    Returns:
        Options for the `java` command; empty without a bundle or if it has no certificate.
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
