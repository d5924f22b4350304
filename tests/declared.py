"""Datasets selected by their contracts: a new dataset takes part in each test of its kind without being listed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from blogdata.contract.partitions import Grain
from blogdata.planning.reaches import Complete, Ended
from quality.contracts import CONTRACTS, GRAPH

OF_ENDED_WEEKS, _OF_COMPLETE = (
    {name for name, contract in CONTRACTS.items() if any(isinstance(read.reach, kind) for read in contract.reads)}
    for kind in (Ended, Complete)
)
"""Datasets that have no row while no week with rows has ended."""
_WAITING = OF_ENDED_WEEKS | _OF_COMPLETE
OF_COMPLETE_WEEKS = GRAPH.downstream(_WAITING) | _WAITING
"""Datasets that no hour or day makes due, as long as the others of its week are not there."""
DAILY, WEEKLY = (
    tuple(
        name
        for name, contract in CONTRACTS.items()
        if (contract.layer, contract.grain) == ("gold", grain) and name not in OF_COMPLETE_WEEKS
    )
    for grain in (Grain.DAY, Grain.WEEK)
)
_JOINED_WITH_ADS = "silver.visits_with_ads"
_Keys = TypeVar("_Keys")


def computed_from(dataset: str) -> set[str]:
    """List all datasets computed from a dataset, directly or not, for lakes without ads and without a complete week."""
    below = {name for name in CONTRACTS if dataset in GRAPH.upstream([name])}
    with_ads = {name for name in below if _JOINED_WITH_ADS in {name, *GRAPH.upstream([name])}}
    return below - with_ads - OF_COMPLETE_WEEKS


def by_grain(datasets: set[str], keys: Mapping[Grain | None, _Keys]) -> dict[str, _Keys]:
    """Map each dataset to the keys of its grain."""
    return {name: keys[CONTRACTS[name].grain] for name in datasets}
