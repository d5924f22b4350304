"""What reading a file yields: readable bytes, and the parts that cannot be read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Reading:
    """Bytes that were unpacked from a file.

    Args:
        data: The bytes.
    """

    how: str
    data: bytes


@dataclass(frozen=True)
class Unread:
    """A part of a file that cannot be read."""

    why: str
