"""Keyed hashes as Columns: HMAC-SHA256 (RFC 2104) in Spark's own functions.

An unkeyed hash of an address is no protection: all addresses can be hashed in minutes. The secret itself never enters
a query plan, only a key derived from it for one purpose.
"""

from __future__ import annotations

import hashlib
import hmac

from pyspark.sql import Column
from pyspark.sql import functions as F

_BLOCK = 64
ID_DIGITS = 32
"""Digits of a keyed hash that an identifier has."""


def keyed_hash(message: Column, secret: str, purpose: str) -> Column:
    """Build HMAC-SHA256 of a text, as 64 hexadecimal digits; null for a null.

    Args:
        message: STRING, hashed as UTF-8.
        secret: The deployment's secret.
        purpose: What the hash is for; hashes for two purposes cannot be compared.
    """
    key = derived_key(secret, purpose).ljust(_BLOCK, b"\0")
    inner = F.lit(bytes(byte ^ 0x36 for byte in key))
    outer = F.lit(bytes(byte ^ 0x5C for byte in key))
    digest = F.unhex(F.sha2(F.concat(inner, message.cast("binary")), 256))
    return F.sha2(F.concat(outer, digest), 256)


def derived_key(secret: str, purpose: str) -> bytes:
    """Derive the key for one purpose, 32 bytes."""
    return hmac.new(secret.encode(), purpose.encode(), hashlib.sha256).digest()
