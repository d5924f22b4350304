"""Small tables: their schemas, and their rows as Python values without pyarrow.

pyarrow imports pandas, if installed, to compare a column with a Python value or to convert a timestamp to one.
That import takes longer than reading the log of every table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from blogdata.contract.column_types import parse_fields

if TYPE_CHECKING:
    from arro3.core import Table


_TYPES = {"string": pa.string(), "bigint": pa.int64(), "double": pa.float64(), "boolean": pa.bool_()}
_TYPES["timestamp"] = pa.timestamp("us", tz="UTC")


def schema(columns: str) -> pa.Schema:
    """Build a schema from its columns in Spark SQL, such as `dataset STRING NOT NULL, rows BIGINT`."""
    fields = parse_fields(columns)
    return pa.schema([pa.field(field.name, _TYPES[str(field.type)], nullable=field.nullable) for field in fields])


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
