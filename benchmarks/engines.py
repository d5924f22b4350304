"""Reads a table with three engines, and compares what they found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from benchmarks.same import ResultsDiffer
from blogdata.lake.lake import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_BY = "event_week, user_bucket, page"
_QUERY = """
SELECT {by}, count(*) AS n, count(user_id) AS users, count(DISTINCT visit_id) AS visits,
    min({at}) AS first, max({at}) AS last
FROM {table} GROUP BY {by}
"""


def digests(lake: Lake, dataset: str, spark: SparkSession) -> dict[str, str]:
    """Count the rows by week, bucket and page with Spark, delta-rs and DuckDB; return what each has read.

    Raises:
        ResultsDiffer: An engine found other rows.
    """
    table = lake.at(dataset, _version(lake, dataset))
    lake.read(spark, dataset).createOrReplaceTempView("layout")
    found = {
        "Spark": spark.sql(_QUERY.format(by=_BY, table="layout", at="unix_micros(event_time)")).toArrow(),
        "delta-rs": _by_delta_rs(table),
        "DuckDB": _by_duckdb(table),
    }
    rows = {engine: _rows(one) for engine, one in found.items()}
    for engine, one in rows.items():
        if one != rows["Spark"]:
            raise ResultsDiffer(what="not the same rows", where=f"{dataset}, {engine}", next_step="compare the engines")
    return {
        engine: f"{sum(row[3] for row in one):,} rows in {len(one):,} groups, equal" for engine, one in rows.items()
    }


def _version(lake: Lake, dataset: str) -> int:
    version = lake.version(dataset)
    assert version is not None
    return version


def _by_delta_rs(table: DeltaTable) -> pa.Table:
    at = "arrow_cast(arrow_cast(event_time, 'Timestamp(Microsecond, None)'), 'Int64')"
    query = _QUERY.format(by=_BY, table="layout", at=at)
    found = QueryBuilder().register("layout", table).execute(query)
    return pa.RecordBatchReader.from_stream(found).read_all()


def _by_duckdb(table: DeltaTable) -> pa.Table:
    listed = ", ".join(f"'{file.removeprefix('file://')}'" for file in table.file_uris())
    files = f"read_parquet([{listed}], hive_partitioning = true, hive_types_autocast = false)"
    with duckdb.connect() as connection:
        return connection.sql(_QUERY.format(by=_BY, table=files, at="epoch_us(event_time)")).to_arrow_table()


def _rows(found: pa.Table) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in found.to_pylist()), key=repr)
