"""Counts the rows of a table itself, independently of the ledger: which are there twice."""

from __future__ import annotations

from collections import Counter

from blogdata.lake.lake import Lake
from blogdata.publish.contract import Contract


def repeated(lake: Lake, contract: Contract) -> int:
    """Count the rows whose identity, by the contract, another row of the table has; 0 if rows have no identity."""
    if not contract.identity:
        return 0
    values = lake.columns(contract.dataset, contract.identity).to_pydict()
    cells = [[tuple(cell) if isinstance(cell, list) else cell for cell in values[name]] for name in contract.identity]
    return sum(rows - 1 for rows in Counter(zip(*cells, strict=True)).values())
