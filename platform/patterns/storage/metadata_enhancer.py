"""Metadata Enhancer: files carry the range of their columns, so a reader skips those that cannot match.

Problem: a question about one user opens every file of the day, because only opening a file tells what is in
it.

How it works: Delta keeps the least and greatest value and the nulls of chosen columns with every file; a
reader compares the predicate with them before it opens anything. :func:`choose` picks the columns from the
predicates people really use; :func:`skipping` tells from the log alone how many files a predicate leaves.

The trap: statistics by default are taken of the first 32 columns, so a wide raw text costs at every write
and a useful column after it has none. And statistics of a column that is spread over all files skip
nothing: first sort (Sorter), then measure.

When not to use it: for columns nobody filters by, and for long texts, whose statistics are cut off.

Source: Data Engineering Design Patterns, ch. 8.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import pyarrow as pa

from patterns.core.contract import Contract
from patterns.core.errors import ConfigurationError
from patterns.core.lake import DatasetMissing, Lake

MAX_COLUMNS = 8
_UNORDERED = ("BINARY", "BOOLEAN", "ARRAY", "MAP", "STRUCT", "VARIANT")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TEXT = re.compile(r"'(?:[^']|'')*'")


@dataclass(frozen=True, kw_only=True)
class Between:
    """A condition on one column: from the least to the greatest value, inclusive; None leaves an end open."""

    column: str
    least: Any = None
    greatest: Any = None

    @classmethod
    def equals(cls, column: str, value: Any) -> Between:
        """The column has exactly one value."""
        return cls(column=column, least=value, greatest=value)


@dataclass(frozen=True, kw_only=True)
class Skipping:
    """How many files a table has, and how many of them a predicate leaves to be read."""

    files: int
    matching: int

    @property
    def skipped(self) -> int:
        """Files that need not be opened."""
        return self.files - self.matching


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


def choose(contract: Contract, predicates: Sequence[str], limit: int = MAX_COLUMNS) -> tuple[str, ...]:
    """Choose the columns to keep statistics of, from the predicates of real queries.

    Args:
        contract: The dataset; its partition column needs no statistics, and unordered types have none.
        predicates: SQL conditions, as often as they occur.
        limit: How many columns at most; each costs at every write.

    Returns:
        Column names, the most used first; names as in the contract's order when used equally.

    Raises:
        ConfigurationError: No predicate mentions a column that can have statistics.
    """
    able = _able(contract)
    used = Counter(
        word for predicate in predicates for word in set(_WORD.findall(_TEXT.sub("", predicate))) if word in able
    )
    if not used:
        raise ConfigurationError(
            what="no predicate mentions a column that can have statistics",
            where=contract.dataset,
            next_step=f"give the conditions of real queries on {', '.join(able[:5])}",
        )
    return tuple(sorted(used, key=lambda name: (-used[name], able.index(name)))[:limit])


def skipping(lake: Lake, dataset: str, predicate: Sequence[Between]) -> Skipping:
    """Tell from the log alone how many files a predicate leaves to be read.

    Args:
        lake: The tables' root.
        dataset: Name as `layer.table`.
        predicate: Conditions that all hold; of partition columns or columns with statistics.

    Returns:
        Files there, and files whose statistics do not exclude a match; without them nothing is excluded.

    Raises:
        DatasetMissing: The dataset has never been published.
    """
    parts = lake.parts(dataset)
    if not parts:
        raise DatasetMissing(
            what=f"{dataset} has no table yet",
            where=lake.path(dataset),
            next_step=f"materialize {dataset} first, or run: blogdata run",
        )
    actions = [action for part in parts for action in pa.table(part.table.get_add_actions(flatten=True)).to_pylist()]
    matching = sum(all(_may_match(action, condition) for condition in predicate) for action in actions)
    return Skipping(files=len(actions), matching=matching)


def _able(contract: Contract) -> list[str]:
    partition = contract.partition_column
    return [
        column.name
        for column in contract.columns
        if column.name != partition and not column.type.upper().startswith(_UNORDERED)
    ]


def _may_match(action: Mapping[str, Any], condition: Between) -> bool:
    partition = f"partition.{condition.column}"
    if partition in action:
        least = greatest = action[partition]
    else:
        least, greatest = action.get(f"min.{condition.column}"), action.get(f"max.{condition.column}")
        nulls, rows = action.get(f"null_count.{condition.column}"), action.get("num_records")
        if nulls is not None and nulls == rows:
            return False
    if least is None or greatest is None:
        return True
    if condition.least is not None and _comparable(greatest) < _comparable(condition.least):
        return False
    return condition.greatest is None or _comparable(least) <= _comparable(condition.greatest)


def _comparable(value: Any) -> Any:
    if isinstance(value, datetime) and value.tzinfo is None:
        return value.replace(tzinfo=timezone.utc)
    return value
