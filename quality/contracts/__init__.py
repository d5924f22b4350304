"""One contract per dataset; :data:`CONTRACTS` has them all by name."""

from collections.abc import Mapping
from types import MappingProxyType

from patterns.core.contract import Contract
from quality.contracts import bronze, gold, silver

CONTRACTS: Mapping[str, Contract] = MappingProxyType(
    {contract.dataset: contract for contract in (*bronze.CONTRACTS, *silver.CONTRACTS, *gold.CONTRACTS)}
)
"""Every dataset of the lake, in the order of the lineage."""
