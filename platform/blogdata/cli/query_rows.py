"""The rows of a query as values that can be printed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType


@dataclass(frozen=True, kw_only=True)
class QueryRows:
    """The rows of a result as plain values; times as text in UTC, since Python has no year 0 and none after 9999."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]

    @classmethod
    def of(cls, frame: DataFrame, limit: int) -> QueryRows:
        """Compute at most so many rows."""
        types = [field.dataType for field in frame.schema.fields]
        numbered = frame.limit(limit).toDF(*map(str, range(len(types))))
        cast = [numbered[str(at)].cast(_textual(kind)).alias(str(at)) for at, kind in enumerate(types)]
        rows = numbered.select(*cast).collect()
        return cls(
            columns=frame.columns,
            rows=[[_plain(value, kind) for value, kind in zip(row, types, strict=True)] for row in rows],
        )


def _textual(kind: DataType) -> DataType:
    """Return a type with texts where it has times; Spark casts them, within other values, too."""
    from pyspark.sql import types

    if isinstance(kind, types.TimestampType | types.TimestampNTZType | types.DateType):
        return types.StringType()
    if isinstance(kind, types.StructType):
        return types.StructType(
            [types.StructField(each.name, _textual(each.dataType), each.nullable) for each in kind.fields]
        )
    if isinstance(kind, types.ArrayType):
        return types.ArrayType(_textual(kind.elementType), kind.containsNull)
    if isinstance(kind, types.MapType):
        return types.MapType(_textual(kind.keyType), _textual(kind.valueType), kind.valueContainsNull)
    return kind


def _plain(value: Any, kind: DataType) -> Any:
    from pyspark.sql import types

    if value is None:
        return None
    if isinstance(kind, types.TimestampType):
        return f"{value}Z"
    if isinstance(kind, types.StructType):
        return {each.name: _plain(item, each.dataType) for each, item in zip(kind.fields, value, strict=True)}
    if isinstance(kind, types.ArrayType):
        return [_plain(item, kind.elementType) for item in value]
    if isinstance(kind, types.MapType):
        return {_plain(key, kind.keyType): _plain(item, kind.valueType) for key, item in value.items()}
    return value
