"""Counts the rows of a table themselves, independently of the ledger: what is there, and what is there twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from blogdata.lake.lake import Lake
from blogdata.publish.contract import Contract


def groups(lake: Lake, dataset: str, columns: Sequence[str]) -> Counter[tuple[Any, ...]]:
    """Count the rows of a dataset by some of their columns, without a JVM; lists become tuples."""
    values = lake.columns(dataset, columns).to_pydict()
    cells = [[tuple(cell) if isinstance(cell, list) else cell for cell in values[name]] for name in columns]
    return Counter(zip(*cells, strict=True))


def repeated(lake: Lake, contract: Contract) -> int:
    """Count the rows whose identity, by the contract, another row of the table has; 0 if rows have no identity."""
    if not contract.identity:
        return 0
    return sum(rows - 1 for rows in groups(lake, contract.dataset, contract.identity).values())
