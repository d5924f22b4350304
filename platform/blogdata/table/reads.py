"""Some files of a table as rows, read by Spark as plain Parquet, with the partition values that the log has."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from deltalake import DeltaTable

from blogdata.table import arrow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_GLOB = re.compile(r"([\\*?{}\[\]])")
_MAPPING = "delta.columnMapping.mode"
_MOST_PARTITIONS, _MOST_FILES = 6, 32
"""Spark lists more files in a job of its own."""
_TABLE = "table:"
"""What the alias begins with by which column lineage knows the table of the files (`ColumnLineage`)."""


def files_of(table: DeltaTable, column: str | None, partitions: Collection[str] | None) -> list[dict[str, Any]] | None:
    """List the files of some partitions (None: all) of a table; None if it should be read by its log.

    Those are tables with mapped columns or deletion vectors, and many partitions: each would be a part of the plan.
    """
    plain = (table.metadata().configuration.get(_MAPPING) or "none").lower() == "none"
    if not plain or "deletionVectors" in (table.protocol().reader_features or []):
        return None
    if column is not None and (partitions is None or len(partitions) > _MOST_PARTITIONS):
        return None
    files = arrow.rows_of(table.get_add_actions(flatten=True))
    chosen = [file for file in files if column is None or str(file[f"partition.{column}"]) in (partitions or ())]
    return chosen if len(chosen) <= _MOST_FILES else None


def rows_of_files(
    spark: SparkSession,
    path: str,
    columns: Mapping[str, str],
    files: Sequence[Mapping[str, Any]],
    partition: str | None,
) -> DataFrame:
    """Read files of the table at a path, as the log lists them; a column that a file lacks is null.

    Not for files with deletion vectors or mapped columns: removed rows would return, columns would be empty.
    """
    from pyspark.sql import DataFrame
    from pyspark.sql import functions as F

    inner = ", ".join(f"`{name}` {kind}" for name, kind in columns.items() if name != partition)
    of: dict[str | None, list[str]] = {}
    for file in files:
        of.setdefault(file[f"partition.{partition}"] if partition else None, []).append(file["path"])
    frames = []
    for value, paths in of.items():
        named = [f"{path}/" + _GLOB.sub(r"\\\1", unquote(file)) for file in paths]
        rows = spark.read.schema(inner).parquet(*named)
        if partition:
            rows = rows.withColumn(partition, F.lit(value).cast(columns[partition]))
            rows = rows.select(*[f"`{name}`" for name in columns])
        frames.append(rows)
    if not frames:
        listed = ", ".join(f"`{name}` {kind}" for name, kind in columns.items())
        frames.append(spark.createDataFrame([], listed))
    return reduce(DataFrame.unionByName, frames).alias(f"{_TABLE}{path}")


def columns_of(table: DeltaTable) -> dict[str, str]:
    """Return all columns of a table, name to Spark SQL type, in order: a contract may know fewer."""
    from pyspark.sql.types import StructType

    schema = StructType.fromJson(json.loads(table.schema().to_json()))
    return {column.name: column.dataType.simpleString() for column in schema.fields}
