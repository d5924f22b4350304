"""The clock that planning reads, and which times are possible by it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timezone
from functools import lru_cache

from blogdata.publish.contract import Contract
from blogdata.publish.partitions import Grain, key_of, start_of

EARLIEST = "2000"
"""The earliest plausible year: an older event or delivery has a wrong timestamp."""


def is_possible(key: str, grain: Grain) -> bool:
    """Return whether a key is a valid partition key, not before :data:`EARLIEST` and not in the future."""
    return is_key(key, grain) and key <= key_of(now(), grain)


@lru_cache(maxsize=200_000)
def is_key(key: str, grain: Grain) -> bool:
    """Return whether a key is a valid partition key, not before :data:`EARLIEST`."""
    try:
        moment = datetime.strptime(key, grain.key_format).replace(tzinfo=timezone.utc)
    except ValueError:
        return False
    return moment.strftime(grain.key_format) == key and key >= EARLIEST


def newest_end(contract: Contract, partitions: Iterable[str]) -> datetime | None:
    """Return the end of the newest partition of a dataset; None without one, or for a table without partitions."""
    grain = contract.grain
    if grain is None:
        return None
    newest = max((key for key in partitions if is_possible(key, grain)), default=None)
    return None if newest is None else start_of(newest, grain) + grain.length


def now() -> datetime:
    """Return the current time, UTC; the only clock that planning reads."""
    return datetime.now(timezone.utc)
