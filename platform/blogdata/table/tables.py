"""Creates tables from contracts, and adds new columns and constraints of a contract to existing tables.

Patterns: Constraints Enforcer, Metadata Enhancer, Horizontal Partitioner (:mod:`blogdata.patterns`).
"""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING

from blogdata.contract.contract import Contract
from blogdata.contract.migrations import refuse_return
from blogdata.errors import ConfigurationError
from blogdata.table import committer, members
from blogdata.table.companions import APPEARS_WITH
from blogdata.table.incompatibilities import hold_table
from blogdata.table.lake import Lake

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyspark.sql import SparkSession

CONTRACT = "blogdata.contract"
"""Table property: fingerprint of the contract that was last applied to the table."""
BUCKETS = "blogdata.buckets"
"""Table property: the buckets of all rows of the table, as JSON. A table that is older than the column has none."""
_CONSTRAINT = "delta.constraints."
FOOTER = "parquet.column.statistics.enabled#"
"""Prefix of the table property by which Spark's writer leaves the statistics of a column out of a file's footer. Delta
hands a table's properties to the writer; it does not hand the options of a write."""
_UNORDERED = ("BINARY", "BOOLEAN", "ARRAY", "MAP", "STRUCT", "VARIANT")
MAX_KEPT = 30_000
"""Maximum number of partitions of a table within its retention: three years of hours are 26,280."""


def enforce(spark: SparkSession, lake: Lake, contract: Contract) -> None:
    """Create the dataset's table with the constraints of its contract, or add missing columns and constraints."""
    table, path = lake.caught_up(contract.dataset), lake.path(contract.dataset)
    if table is None:
        _create(spark, lake, contract)
        return
    hold_table(table, contract)
    refuse_return(table, contract)
    members.refuse_direct(table, contract.dataset)
    known = table.metadata().configuration
    absent = {
        name: expression
        for name, expression in constraints(contract).items()
        # Delta puts spaces around the tokens of a constraint added by SQL.
        if "".join((known.get(f"{_CONSTRAINT}{name}") or "").split()) != "".join(expression.split())
    }
    if known.get(CONTRACT) == contract.fingerprint and not absent and statistics(contract).items() <= known.items():
        return
    _add_columns(spark, table, path, contract)
    for name, expression in absent.items():
        if f"{_CONSTRAINT}{name}" in known:
            spark.sql(f"ALTER TABLE delta.`{path}` DROP CONSTRAINT IF EXISTS `{name}`")
        spark.sql(f"ALTER TABLE delta.`{path}` ADD CONSTRAINT `{name}` CHECK ({expression})")
    # The fingerprint comes last: after a crash in between, the next call applies the contract again.
    properties = {**_followed(contract), CONTRACT: contract.fingerprint}
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ({listed})")


def constraints(contract: Contract) -> dict[str, str]:
    return {rule.name.lower(): rule.expression for rule in contract.rules}


def statistics(contract: Contract) -> dict[str, str]:
    """Build the table properties by which Delta collects statistics of the contract's `statistics` columns only.

    A column that identifies a person has none: its bounds in each file would stay in the log, which everybody reads and
    which outlives the rows. A contract that names no columns has Delta's default, or none if one identifies a person.
    """
    partition = contract.partition_column
    persons = {column.name for column in contract.columns if column.of_a_person}
    ordered = [column.name for column in contract.columns if not column.type.upper().startswith(_UNORDERED)]
    able = [name for name in ordered if name not in {partition, *persons}]
    if unable := sorted(set(contract.statistics) - {*able, partition}):
        named = (f"{name} (identifies a person)" if name in persons else name for name in unable)
        raise ConfigurationError(
            what=f"columns that cannot have statistics: {', '.join(named)}",
            where=f"{contract.dataset}, statistics of the contract",
            next_step=f"choose from: {', '.join(able)}",
        )
    kept = ",".join(name for name in contract.statistics if name != partition)
    without = {f"{FOOTER}{column.name}": "false" for column in contract.columns if column.name in persons}
    if not kept and without:
        return {"delta.dataSkippingNumIndexedCols": "0", **without}
    return {"delta.dataSkippingStatsColumns": kept, **without} if kept else {}


def partition_column(contract: Contract) -> str | None:
    """Return the partition column of a dataset's table; refuse one that would produce too many partitions."""
    if contract.partitioning is None:
        return None
    kept = timedelta(days=contract.retention_days) // contract.partitioning.grain.length
    if kept > MAX_KEPT:
        raise ConfigurationError(
            what=f"{contract.retention_days} days by the {contract.partitioning.grain.value} are {kept:,} partitions; "
            f"a table bears {MAX_KEPT:,}",
            where=f"{contract.dataset}, column {contract.partitioning.column}",
            next_step="partition by a coarser grain, or keep the dataset for less time",
        )
    return contract.partitioning.column


def _properties(contract: Contract) -> dict[str, str]:
    retention = {}
    if contract.executed is not None and contract.replay_limit is not None:
        # For as long as an execution may be rerun on one of them.
        kept = f"interval {(contract.executed.length * (contract.replay_limit + 1)).days + 1} days"
        retention = {"delta.deletedFileRetentionDuration": kept, "delta.logRetentionDuration": kept}
    return {
        # A commit is idempotent while its transaction identifier is retained. Those of single commits must expire, or
        # the log grows for ever. A stream has one identifier for all its batches, which the engine exempts from expiry.
        "delta.setTransactionRetentionDuration": "interval 7 days",
        **retention,
        **({BUCKETS: json.dumps(asdict(contract.buckets))} if contract.buckets else {}),
        **_followed(contract),
    }


def _followed(contract: Contract) -> dict[str, str]:
    return {
        **({APPEARS_WITH: contract.appears_with} if contract.appears_with else {}),
        # Whole partitions are replaced, so Delta derives the feed from their files, and a writer writes nothing more.
        **({"delta.enableChangeDataFeed": "true"} if contract.feeds else {}),
        **statistics(contract),
    }


def _create(spark: SparkSession, lake: Lake, contract: Contract) -> None:
    from pyspark.sql.types import StructField, StructType

    # By this session: `DataType.fromDDL` asks whichever is the process's default one, column by column.
    types = ", ".join(f"CAST(NULL AS {column.type}) AS `{column.name}`" for column in contract.columns)
    pairs = zip(contract.columns, spark.sql(f"SELECT {types}").schema, strict=True)
    fields = []
    for column, field in pairs:
        generated = {} if column.generated is None else {"delta.generationExpression": column.generated}
        noted = {"comment": column.description, **generated}
        fields.append(StructField(column.name, field.dataType, column.nullable, noted))
    checks = {f"{_CONSTRAINT}{name}": expression for name, expression in constraints(contract).items()}
    properties = {**_properties(contract), **checks, CONTRACT: contract.fingerprint}
    partition, description = partition_column(contract), contract.description
    schema = StructType(fields).json()
    committer.create(
        lake, contract.dataset, schema, partition=partition, description=description, properties=properties
    )


def _add_columns(spark: SparkSession, table: DeltaTable, path: str, contract: Contract) -> None:
    present = {field.name for field in table.schema().fields}
    added = [f"`{column.name}` {column.type}" for column in contract.columns if column.name not in present]
    if added:
        spark.sql(f"ALTER TABLE delta.`{path}` ADD COLUMNS ({', '.join(added)})")
    # Also if the columns are there: a process may have died before it filled them.
    defaults = {column.name: column.default for column in contract.columns if column.default is not None}
    if defaults:
        filled = ", ".join(f"`{name}` = coalesce(`{name}`, {default})" for name, default in defaults.items())
        empty = " OR ".join(f"(`{name}` IS NULL AND ({default}) IS NOT NULL)" for name, default in defaults.items())
        spark.sql(f"UPDATE delta.`{path}` SET {filled} WHERE {empty}")
