"""Which periods late rows still change (Static Late Data Integrator)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lake.commit import Entry
from patterns.error_management.static_late_data_integrator import Lookback
from planning import look
from publish.contract import Contract
from publish.partitions import Grain, key_of


def lookback_of(contract: Contract) -> Lookback | None:
    """Give a dataset's lookback; None when it takes late rows in whenever they come."""
    if contract.runs.lookback is None or contract.partitioning is None:
        return None
    return Lookback(length=contract.runs.lookback, grain=contract.partitioning.grain)


def deciding(newest: str, grain: Grain) -> str:
    """Give the period whose lookback says what is final: the newest one with rows, once it has ended.

    Args:
        newest: The newest period with rows; the one that is running has some, and is not computed yet.
        grain: Its length.
    """
    return min(newest, key_of(look.now() - grain.length, grain))


def open_periods(contract: Contract, keys: Iterable[str], published: Mapping[str, Entry], newest: str) -> list[str]:
    """Keep the periods that are not final yet, or were never published.

    Args:
        contract: Of the dataset.
        keys: Some of its periods.
        published: Period to its newest publication.
        newest: The newest period with rows.
    """
    lookback = lookback_of(contract)
    if lookback is None:
        return list(keys)
    execution = deciding(newest, lookback.grain)
    return [key for key in keys if key not in published or not lookback.is_final(key, execution)]
