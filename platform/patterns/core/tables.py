"""Creates tables from contracts, and brings older tables up to their contract where that is safe."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from patterns.core.contract import Contract
from patterns.core.errors import PlatformError
from patterns.core.lake import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SchemaDrift(PlatformError):
    """A table and its contract disagree in a way that must not be mended without a person."""


def ensure(spark: SparkSession, lake: Lake, contract: Contract) -> None:
    """Create the dataset's table with the constraints of its contract, or add columns and constraints it lacks.

    Raises:
        SchemaDrift: A column changed its type or was removed from the contract.
    """
    table = lake.table(contract.dataset)
    path = lake.path(contract.dataset)
    known = dict(table.metadata().configuration) if table else {}
    if known.get("blogdata.contract") == contract.fingerprint:
        return
    if table is None:
        spark.sql(_create(path, contract))
    else:
        _add_columns(spark, lake, contract)
    for name, expression in _constraints(contract).items():
        present = known.get(f"delta.constraints.{name}")
        if present == expression:
            continue
        if present is not None:
            spark.sql(f"ALTER TABLE delta.`{path}` DROP CONSTRAINT IF EXISTS `{name}`")
        spark.sql(f"ALTER TABLE delta.`{path}` ADD CONSTRAINT `{name}` CHECK ({expression})")
    # Last, so that a crash in between leaves a table that is brought up to date again.
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('blogdata.contract' = '{contract.fingerprint}')")


def _constraints(contract: Contract) -> dict[str, str]:
    return {rule.name.lower(): rule.expression for rule in contract.rules}


def _create(path: str, contract: Contract) -> str:
    columns = ", ".join(
        f"`{column.name}` {column.type}{'' if column.nullable else ' NOT NULL'} COMMENT {_literal(column.description)}"
        for column in contract.columns
    )
    statistics = [name for name in contract.statistics if not _partitions(contract, name)]
    partitioned = f"PARTITIONED BY (`{contract.partitioning.column}`)" if contract.partitioning else ""
    properties = {
        # A commit is idempotent for as long as its transaction identifier is remembered; forever would grow the log.
        "delta.setTransactionRetentionDuration": "interval 7 days",
        "delta.dataSkippingStatsColumns": ",".join(statistics),
    }
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items() if value)
    return (
        f"CREATE TABLE IF NOT EXISTS delta.`{path}` ({columns}) USING delta {partitioned} "
        f"COMMENT {_literal(contract.description)} TBLPROPERTIES ({listed})"
    )


def _add_columns(spark: SparkSession, lake: Lake, contract: Contract) -> None:
    path = lake.path(contract.dataset)
    present = {field.name: field.dataType.simpleString() for field in lake.read(spark, contract.dataset).schema}
    wanted = {column.name: column for column in contract.columns}
    gone = sorted(set(present) - set(wanted))
    changed = sorted(
        name for name, column in wanted.items() if name in present and _simple(column.type) != present[name]
    )
    if gone or changed:
        raise SchemaDrift(
            what=f"the table and its contract disagree (removed: {gone or 'none'}, other type: {changed or 'none'})",
            where=f"{contract.dataset} at {path}",
            next_step="restore the columns in the contract, or migrate the table before changing the contract",
        )
    added = [f"`{name}` {column.type}" for name, column in wanted.items() if name not in present]
    if added:
        spark.sql(f"ALTER TABLE delta.`{path}` ADD COLUMNS ({', '.join(added)})")


def _partitions(contract: Contract, column: str) -> bool:
    return contract.partitioning is not None and contract.partitioning.column == column


@lru_cache(maxsize=64)
def _simple(ddl: str) -> str:
    from pyspark.sql.types import DataType

    return DataType.fromDDL(ddl).simpleString()


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
