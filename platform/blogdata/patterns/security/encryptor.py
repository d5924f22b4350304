"""Encryptor: columns are stored encrypted; the files of the table are useless without the key.

Problem: a backup or a copied folder gives away all of a table. Roles and views protect only from queries through them.
How it works: a contract names the encrypted columns, the key, and the column that says which row a value belongs to
(:class:`blogdata.contract.schema.Encrypted`). :func:`encrypted` replaces each text by its ciphertext (AES-256-GCM)
before it is written, :func:`decrypted` gives it back to who may see it. Spark's workers compute both: a plan has the
*name* of a key and where it is (Secrets Pointer), and the workers read its value there. Dataset, column and row are
associated data: a ciphertext that was changed, or moved to another row, is an error, and never a wrong value.

The nonce is a keyed hash, of 96 bits, of the text and of what it belongs to (as in RFC 5297, SIV): the same text in the
same row has the same ciphertext, so a table that is derived anew equals the one that was continued. A ciphertext shows
the length of its text, whether a row has the same value as before, and that it is null.

A key has versions, and each ciphertext names its own. Rotation adds a version and publishes the table again by it; the
table's earlier versions need the old one until they are vacuumed. Removing a version of the key makes everything that
it encrypted unreadable at once, wherever a copy is (crypto-shredding), for all persons: a key for each person would
itself be a row about each person, copied and backed up as well.
The trap: the key beside the data. Secrets in the deployment's home protect a lake that lies elsewhere, or is copied
without them; a backup of the whole home has both. Another trap: a lost key. What it encrypted is gone, unless it can be
computed again: here from bronze, by another version.
When not to use it: for columns that are joined, filtered or counted by value: that takes a token (Pseudo-Anonymizer).
And not against the operator of the deployment, who reads its secrets, nor for lines as received: bronze and the
landing zone have the same values in plain text.
Source: Data Engineering Design Patterns, ch. 7; NIST SP 800-38D (GCM).
"""

from __future__ import annotations

import hmac
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING

from blogdata.errors import PlatformError
from blogdata.errors.remedies import Remedy, Run
from blogdata.patterns.security.secrets_pointer import Pointer

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from pyspark.sql import DataFrame

    from blogdata.contract.contract import Contract

_FAULT = "[BLOGDATA_ENCRYPTION] "
"""What a worker's errors begin with; they quote no value."""
_NONCE = 12


class CannotDecrypt(PlatformError):
    """Raised when a key is gone, or a stored value is not what was encrypted; no value is shown in its place."""

    exit_code = 2


def encrypted(rows: DataFrame, contract: Contract, key: Pointer, version: int) -> DataFrame:
    """Encrypt the columns that a contract names by a version of its key, in files that Spark's workers can read."""
    return _replaced(rows, contract, lambda texts, places: _encrypted(texts, places, key, version))


def decrypted(rows: DataFrame, contract: Contract, key: Pointer) -> DataFrame:
    return _replaced(rows, contract, lambda texts, places: _decrypted(texts, places, key))


def explained(text: str, secrets: Path) -> CannotDecrypt | None:
    """Explain the error of a query that could not decrypt; None for any other error."""
    _, sign, fault = text.partition(_FAULT)
    if not sign:
        return None
    return CannotDecrypt(
        what=fault.partition("\n")[0].strip(),
        where=f"the files of the table, or the keys in {secrets}",
        next_step=Remedy(
            "bring the right version of the key back, or publish the dataset again, by the current one: ",
            Run(datasets=("DATASET",)),
        ),
    )


def _replaced(rows: DataFrame, contract: Contract, function: Callable[[pa.Array, pa.Array], pa.Array]) -> DataFrame:
    from pyspark.sql import functions as F
    from pyspark.sql.pandas.functions import arrow_udf
    from pyspark.sql.types import StringType

    assert contract.encrypted is not None
    row, computed = contract.encrypted.row, arrow_udf(function, StringType())  # type: ignore[call-overload]
    places = {name: F.concat_ws("\n", F.lit(f"{contract.dataset}.{name}"), row) for name in contract.encrypted.columns}
    # A new table would name the collation of strings that come from workers.
    return rows.withColumns({name: computed(F.col(name), place).cast("string") for name, place in places.items()})


def _encrypted(texts: pa.Array, places: pa.Array, key: Pointer, version: int) -> pa.Array:
    cipher, nonces = _keys(key, version)

    def sealed(text: str, place: str) -> str:
        nonce = _hash(nonces, place.encode(), text.encode())[:_NONCE]
        content = nonce + cipher.encrypt(nonce, text.encode(), place.encode())
        return f"{version}.{urlsafe_b64encode(content).decode().rstrip('=')}"

    return _each(sealed, texts, places)


def _decrypted(texts: pa.Array, places: pa.Array, key: Pointer) -> pa.Array:
    from cryptography.exceptions import InvalidTag

    keys = cache(partial(_keys, key))

    def opened(text: str, place: str) -> str:
        version, _, sealed = text.partition(".")
        try:
            number, content = int(version), b64decode(sealed + "=" * (-len(sealed) % 4), b"-_", validate=True)
        except ValueError:
            # Without its cause, which has the text.
            raise _not_authentic(key, "it is no encrypted text") from None
        cipher, _ = keys(number)
        try:
            return cipher.decrypt(content[:_NONCE], content[_NONCE:], place.encode()).decode()
        except (InvalidTag, ValueError):
            raise _not_authentic(key, f"it was changed, cut or moved, or version {number} is another key now") from None

    return _each(opened, texts, places)


def _each(function: Callable[[str, str], str], texts: pa.Array, places: pa.Array) -> pa.Array:
    import pyarrow as pa

    pairs = zip(texts.to_pylist(), places.to_pylist(), strict=True)
    return pa.array([None if text is None else function(text, place) for text, place in pairs], pa.string())


def _keys(key: Pointer, version: int) -> tuple[AESGCM, bytes]:
    """Derive the keys of a version, one for each purpose: the cipher, and that of the nonces."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    try:
        secret = key.read(version)
    except OSError:
        secret = None
    if secret is None:
        raise ValueError(f"{_FAULT}the deployment's secrets lack version {version} of the key {key.name}")
    return AESGCM(_hash(secret.reveal().encode(), b"encryption")), _hash(secret.reveal().encode(), b"nonce")


def _hash(key: bytes, *parts: bytes) -> bytes:
    # Each part with its length: no two pairs of texts are one message.
    return hmac.digest(key, b"".join(len(part).to_bytes(4, "big") + part for part in parts), "sha256")


def _not_authentic(key: Pointer, why: str) -> ValueError:
    return ValueError(f"{_FAULT}a stored value is not what the key {key.name} encrypted: {why}")
