"""The clock that planning reads: which times are possible, which periods are final (Static Late Data Integrator)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from functools import lru_cache

from blogdata.contract.contract import Contract
from blogdata.contract.partitions import Grain, key_of, start_of
from blogdata.contract.publication import Entry
from blogdata.patterns.error_management.static_late_data_integrator import Lookback

EARLIEST = "2000"
"""The earliest plausible year: an older event or delivery has a wrong timestamp."""


def is_possible(key: str, grain: Grain) -> bool:
    """Return whether a key is a valid partition key, not before :data:`EARLIEST` and not in the future."""
    return is_key(key, grain) and key <= key_of(now(), grain)


@lru_cache(maxsize=200_000)
def is_key(key: str, grain: Grain) -> bool:
    try:
        moment = datetime.strptime(key, grain.key_format).replace(tzinfo=timezone.utc)
    except ValueError:
        return False
    return moment.strftime(grain.key_format) == key and key >= EARLIEST


def newest_end(contract: Contract, partitions: Iterable[str]) -> datetime | None:
    grain = contract.grain
    if grain is None:
        return None
    newest = max((key for key in partitions if is_possible(key, grain)), default=None)
    return None if newest is None else start_of(newest, grain) + grain.length


def now() -> datetime:
    """Return the current time, UTC; the only clock that planning reads."""
    return datetime.now(timezone.utc)


def lookback_of(contract: Contract) -> Lookback | None:
    if contract.runs.lookback is None or contract.partitioning is None:
        return None
    return Lookback(length=contract.runs.lookback, grain=contract.partitioning.grain)


def newest_ended(newest: str, grain: Grain) -> str:
    """Return the period whose lookback decides what is final: the newest one with rows, or the last one that ended."""
    return min(newest, key_of(now() - grain.length, grain))


def open_periods(contract: Contract, keys: Iterable[str], published: Mapping[str, Entry], newest: str) -> list[str]:
    """Keep the periods that are not final, or were never published."""
    lookback = lookback_of(contract)
    if lookback is None:
        return list(keys)
    execution = newest_ended(newest, lookback.grain)
    return [key for key in keys if key not in published or not lookback.is_final(key, execution)]
