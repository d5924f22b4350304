"""Pseudo-Anonymizer: a person's id is replaced by a token, so that rows can still be counted and joined.

Problem: an analyst of visits has to know which page views are of one visit, and not whose. An id as it is leads to the
person: another table has it beside the name.
How it works: a token is a keyed hash (:func:`keyed_hash`), HMAC-SHA256 with a key for one purpose, derived from the
deployment's secret (:func:`derived_key`): rows of one purpose join, and nobody tests ids against tokens without the
secret. Each place where tokens are published has a purpose of its own (:func:`token`, and :func:`token_of` outside of
Spark), so the tokens of two places cannot be joined. Rows that may not lead to their person have tokens apart from
those of the same visit that may. A partner's tokens have a secret of their own.

Each publication records the key of its tokens. A key that was replaced by mistake is refused before a row is written:
every visitor would be a new one. It is rotated on purpose by computing all tokens again (the job `rotate`): the ids are
there, encrypted or in bronze, so no vault with a row for each person has to be kept, erased and backed up.

To look for faults, one needs to see what is wrong with a value, which no token tells. A mask (:func:`masked_email`)
leaves the first letter and the domain of an e-mail address, and nothing of another text. Masked values do not join.
The trap: a hash without a key. There are 4 billion addresses and far fewer user ids, so all of them are hashed in
minutes (dictionary attack). And the false sense of security: the columns beside a token may still single somebody out,
as the attack of the Anonymizer's test measures, and a mask of a rare value hides little.
When not to use it: for people outside, who get anonymous rows (Anonymizer), and where the id is needed again: no table
of ids and tokens is kept.
Source: Data Engineering Design Patterns, ch. 7; RFC 2104 (HMAC).
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING

from blogdata.patterns.security.secrets_pointer import Pointer, fetch

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column

_BLOCK = 64
ID_DIGITS = 32
"""Digits of a keyed hash that an identifier has."""


def token(value: Column, secret: str, purpose: str) -> Column:
    """Replace an identifier, STRING of 32 hexadecimal digits; null for a null."""
    from pyspark.sql import functions as F

    return F.substring(keyed_hash(value, secret, purpose), 1, ID_DIGITS)


def token_of(value: str, secret: str, purpose: str) -> str:
    """Replace an identifier outside Spark, by the same token as :func:`token`."""
    return _token(derived_key(secret, purpose), value)


def tokens(values: pa.Array, secret: Pointer, purpose: str) -> pa.Array:
    """Replace identifiers in a worker of Spark, which fetches the secret itself; null for a null."""
    import pyarrow as pa

    key = derived_key(fetch(secret).reveal(), purpose)
    return pa.array([None if value is None else _token(key, value) for value in values.to_pylist()], pa.string())


def _token(key: bytes, value: str) -> str:
    return hmac.digest(key, value.encode(), "sha256").hex()[:ID_DIGITS]


def keyed_hash(message: Column, secret: str, purpose: str) -> Column:
    """Build HMAC-SHA256 of a text in Spark's own functions, as 64 hexadecimal digits; null for a null."""
    from pyspark.sql import functions as F

    key = derived_key(secret, purpose).ljust(_BLOCK, b"\0")
    inner = F.lit(bytes(byte ^ 0x36 for byte in key))
    outer = F.lit(bytes(byte ^ 0x5C for byte in key))
    digest = F.unhex(F.sha2(F.concat(inner, message.cast("binary")), 256))
    return F.sha2(F.concat(outer, digest), 256)


def masked_email(value: str) -> str:
    """Build the SQL of the first sign and the domain of an e-mail address; `***` for another text, null for a null."""
    parts = "'^([^@])[^@]*@([A-Za-z0-9.-]+)$'"
    masked = f"regexp_replace({value}, {parts}, '$1***@$2')"
    return f"CASE WHEN {value} RLIKE {parts} THEN {masked} WHEN {value} IS NOT NULL THEN '***' END"


def derived_key(secret: str, purpose: str) -> bytes:
    """Derive the key for one purpose, 32 bytes."""
    return hmac.digest(secret.encode(), purpose.encode(), "sha256")
