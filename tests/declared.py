"""Datasets selected by their contracts: a new dataset takes part in each test of its kind without being listed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from blogdata.publish.partitions import Grain
from quality.contracts import CONTRACTS, GRAPH

DAILY, WEEKLY = (
    tuple(name for name, contract in CONTRACTS.items() if (contract.layer, contract.grain) == ("gold", grain))
    for grain in (Grain.DAY, Grain.WEEK)
)
_JOINED_WITH_ADS = "silver.visits_with_ads"
_Keys = TypeVar("_Keys")


def computed_from(dataset: str) -> set[str]:
    """List all datasets computed from a dataset, directly or not, for lakes without ads."""
    below = {name for name in CONTRACTS if dataset in GRAPH.upstream([name])}
    return {name for name in below if _JOINED_WITH_ADS not in {name, *GRAPH.upstream([name])}}


def by_grain(datasets: set[str], keys: Mapping[Grain | None, _Keys]) -> dict[str, _Keys]:
    """Map each dataset to the keys of its grain."""
    return {name: keys[CONTRACTS[name].grain] for name in datasets}
