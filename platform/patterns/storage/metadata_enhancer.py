"""Metadata Enhancer: files carry the range of their columns, so a reader skips those that cannot match.

Problem: a question about one user opens every file of the day, because only opening a file tells what is in
it.

How it works: Delta keeps the least and greatest value and the nulls of chosen columns with every file; a
reader compares the predicate with them before it opens anything. The contract names the columns people filter by;
:func:`properties` has Delta keep statistics of these and of no other.

The trap: statistics by default are taken of the first 32 columns, so a wide raw text costs at every write
and a useful column after it has none. And statistics of a column that is spread over all files skip
nothing: first sort (Sorter), then measure.

When not to use it: for columns nobody filters by, and for long texts, whose statistics are cut off.

Source: Data Engineering Design Patterns, ch. 8.
"""

from __future__ import annotations

from errors import ConfigurationError
from publish.contract import Contract

_UNORDERED = ("BINARY", "BOOLEAN", "ARRAY", "MAP", "STRUCT", "VARIANT")


def properties(contract: Contract) -> dict[str, str]:
    """Give the table properties that make Delta keep statistics of the contract's columns, and of no other.

    Args:
        contract: The dataset; its partition column is in the folders' names already.

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
