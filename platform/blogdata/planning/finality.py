"""Decides which periods late rows still change, and which are final (Static Late Data Integrator)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from blogdata.lake.commit import Entry
from blogdata.patterns.error_management.static_late_data_integrator import Lookback
from blogdata.planning import clock
from blogdata.publish.contract import Contract
from blogdata.publish.partitions import Grain, key_of


def lookback_of(contract: Contract) -> Lookback | None:
    """Return a dataset's lookback; None if it integrates late rows without a limit."""
    if contract.runs.lookback is None or contract.partitioning is None:
        return None
    return Lookback(length=contract.runs.lookback, grain=contract.partitioning.grain)


def newest_ended(newest: str, grain: Grain) -> str:
    """Return the period whose lookback decides what is final: the newest one with rows, or the last one that ended.

    Args:
        newest: The newest period with rows; if it is still running, the last period that ended is returned.
    """
    return min(newest, key_of(clock.now() - grain.length, grain))


def open_periods(contract: Contract, keys: Iterable[str], published: Mapping[str, Entry], newest: str) -> list[str]:
    """Keep the periods that are not final, or were never published."""
    lookback = lookback_of(contract)
    if lookback is None:
        return list(keys)
    execution = newest_ended(newest, lookback.grain)
    return [key for key in keys if key not in published or not lookback.is_final(key, execution)]
