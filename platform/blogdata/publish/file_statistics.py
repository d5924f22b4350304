"""The columns of which Delta keeps statistics for each file.

Pattern: Metadata Enhancer (:mod:`blogdata.patterns.storage.metadata_enhancer`).
"""

from __future__ import annotations

from blogdata.errors import ConfigurationError
from blogdata.publish.contract import Contract

_UNORDERED = ("BINARY", "BOOLEAN", "ARRAY", "MAP", "STRUCT", "VARIANT")


def properties(contract: Contract) -> dict[str, str]:
    """Build the table properties that make Delta collect statistics of the contract's `statistics` columns only.

    Args:
        contract: Contract of the dataset; its partition column is left out, as folder names already contain it.

    Raises:
        ConfigurationError: A column is not in the contract, or its type has no order.
    """
    partition = contract.partition_column
    unable = sorted(set(contract.statistics) - set(_able(contract)) - {partition})
    if unable:
        raise ConfigurationError(
            what=f"columns that cannot have statistics: {', '.join(unable)}",
            where=f"{contract.dataset}, statistics of the contract",
            next_step=f"choose from: {', '.join(_able(contract))}",
        )
    kept = ",".join(name for name in contract.statistics if name != partition)
    return {"delta.dataSkippingStatsColumns": kept} if kept else {}


def _able(contract: Contract) -> list[str]:
    partition = contract.partition_column
    return [
        column.name
        for column in contract.columns
        if column.name != partition and not column.type.upper().startswith(_UNORDERED)
    ]
