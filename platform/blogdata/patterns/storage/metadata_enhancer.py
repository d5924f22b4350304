"""Metadata Enhancer: each file has min/max statistics of its columns, so a reader skips files that cannot match.

Problem: a query for one user opens every file of the day, because a file's content is known only after opening it.

How it works: for every file, Delta stores the minimum, the maximum and the null count of chosen columns. A reader
compares the predicate with them before it opens a file. The contract names the columns that queries filter by;
:func:`properties` makes Delta collect statistics of these columns only.

The trap: by default, Delta collects statistics of the first 32 columns: a wide raw text costs on every write, and a
useful column behind them has no statistics. And if the values of a column are spread over all files, its statistics
skip nothing: sort first (Sorter), then measure.

When not to use it: for columns that no query filters by, and for long texts, whose statistics are truncated.

Source: Data Engineering Design Patterns, ch. 8.
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
