"""One contract per dataset; :data:`EVERY` has them all by name."""

from collections.abc import Mapping
from types import MappingProxyType

from patterns.core.contract import Contract
from quality.contracts import bronze, gold, live, silver

CONTRACTS: Mapping[str, Contract] = MappingProxyType(
    {contract.dataset: contract for contract in (*bronze.CONTRACTS, *silver.CONTRACTS, *gold.CONTRACTS)}
)
"""Every dataset that is computed by partitions, in the order of the lineage."""
STREAMED: Mapping[str, Contract] = MappingProxyType({contract.dataset: contract for contract in live.CONTRACTS})
"""The datasets that a stream adds to; no run of `blogdata run` computes them."""
EVERY: Mapping[str, Contract] = MappingProxyType(
    {
        name: contract
        for layer in ("bronze", "silver", "gold")
        for name, contract in {**CONTRACTS, **STREAMED}.items()
        if contract.layer == layer
    }
)
"""Every dataset of the lake."""
