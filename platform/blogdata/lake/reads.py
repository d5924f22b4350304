"""Some files of a table as rows, read by Spark as plain Parquet, with the partition values that the log has."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from deltalake import DeltaTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_GLOB = re.compile(r"([\\*?{}\[\]])")
_TABLE = "of_table"
"""Option of the reader by which column lineage knows the table of the files."""


def rows_of_files(
    spark: SparkSession,
    path: str,
    columns: Mapping[str, str],
    files: Sequence[Mapping[str, Any]],
    partition: str | None,
) -> DataFrame:
    """Read files of the table at a path, as the log lists them; a column that a file lacks is null.

    Not for files with deletion vectors or mapped columns: removed rows would return, columns would be empty.

    Args:
        columns: Name to Spark SQL type of the columns, in order.
        partition: The partition column.
    """
    from pyspark.sql import DataFrame
    from pyspark.sql import functions as F

    inner = ", ".join(f"`{name}` {kind}" for name, kind in columns.items() if name != partition)
    of: dict[str | None, list[str]] = {}
    for file in files:
        of.setdefault(file[f"partition.{partition}"] if partition else None, []).append(file["path"])
    frames = []
    for value, paths in of.items():
        named = [f"{path}/{_GLOB.sub(_escaped, unquote(one))}" for one in paths]
        rows = spark.read.schema(inner).option(_TABLE, path).parquet(*named)
        if partition:
            rows = rows.withColumn(partition, F.lit(value).cast(columns[partition]))
        frames.append(rows.select(*[f"`{name}`" for name in columns]))
    if not frames:
        listed = ", ".join(f"`{name}` {kind}" for name, kind in columns.items())
        return spark.createDataFrame([], listed)
    return reduce(DataFrame.unionByName, frames)


def columns_of(table: DeltaTable) -> dict[str, str]:
    """Return all columns of a table, name to Spark SQL type, in order: a contract may know fewer."""
    from pyspark.sql.types import StructType

    schema = StructType.fromJson(json.loads(table.schema().to_json()))
    return {column.name: column.dataType.simpleString() for column in schema.fields}


def _escaped(found: re.Match[str]) -> str:
    return "\\" + found[1]
