"""Rows of a table as Python values, read without pyarrow.

pyarrow imports pandas, if installed, to compare a column with a Python value or to convert a timestamp to one.
That import takes longer than reading the log of every table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable, QueryBuilder

if TYPE_CHECKING:
    from arro3.core import Table


def rows_of(table: Table, names: Sequence[str] = ()) -> list[dict[str, Any]]:
    # A table of add actions lacks its statistics columns when it has no rows.
    chosen = list(names or table.column_names) if table.num_rows else []
    cells = [table.column(name).to_pylist() for name in chosen]
    return [dict(zip(chosen, row, strict=True)) for row in zip(*cells, strict=True)]


def select(table: DeltaTable, query: str) -> list[dict[str, Any]]:
    """Run an SQL query on a Delta table, which is called `t` in it."""
    return rows_of(QueryBuilder().register("t", table).execute(query).read_all())


def text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
