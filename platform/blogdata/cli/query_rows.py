"""The rows of a query as values that can be printed.

Has Spark judge a person's statement before it is run: it may read the given views, and do nothing else.

The engine judges the plan, as Spark's own parser and analyser see it (`ReadOnlyQuery`). Text is never matched.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from blogdata.errors import ConfigurationError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType


_REFUSED = "[BLOGDATA_NOT_READ_ONLY] "
_UNKNOWN_SOURCE = "DATA_SOURCE_NOT_FOUND"
_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")
_SESSION = {
    # Otherwise the parser replaces ${env:NAME}, also within a literal.
    "spark.sql.variable.substitute": "false",
    "spark.sql.session.timeZone": "UTC",
}


def require_read_only(
    spark: SparkSession, query: str, views: Iterable[str], *, written: str = "", views_only: bool = False
) -> None:
    """Refuse a statement that does anything but read the given views; nothing of it is run.

    Args:
        written: The statement with names of tables, as a person wrote it; empty: as it is.

    Raises:
        ConfigurationError: It does something else, or the server has no engine and cannot judge it.
        PySparkException: It is no statement of Spark's SQL, or names a column that does not exist.
    """
    from pyspark.errors import PySparkException

    for key, value in _SESSION.items():
        spark.conf.set(key, value)
    judged = spark.read.format("read-only-query").option("query", query).option("views", json.dumps(sorted(views)))
    judged = judged.option("views_only", str(views_only).lower())
    try:
        # The engine judges while Spark looks for the schema.
        judged.load().schema  # noqa: B018
    except PySparkException as error:
        text = str(error)
        if error.getCondition() == _UNKNOWN_SOURCE or _UNKNOWN_SOURCE in text:
            raise ConfigurationError(
                what="this Spark server cannot judge whether a statement only reads, so none is run",
                where="the Spark server, without the engine's jar",
                next_step="load the engine's jar, or query the tables with another reader of Delta tables: write their "
                "views with blogdata job share",
            ) from error
        if _REFUSED in text:
            found = text.partition(_REFUSED)[2].partition("\n")[0].strip()
            if found.isidentifier():
                # The class of a plan's node, such as DropTable.
                found = f"a part that is none: {_CAPITAL.sub(' ', found).lower()}"
            raise ConfigurationError(
                what=f"only queries are run here, over the lake's tables; this has {found}",
                where=f"'{(written or query).strip()[:60]}'",
                next_step="read layer.table by SELECT, WITH, DESCRIBE or EXPLAIN, with functions that only compute; "
                "tables are written by materializing datasets: blogdata run",
            ) from error
        raise


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
