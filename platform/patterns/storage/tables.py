"""Creates tables from contracts, and brings older tables up to their contract where that is safe."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from errors import PlatformError
from lake import members
from lake.companions import APPEARS_WITH
from lake.lake import Lake
from patterns.storage import metadata_enhancer
from patterns.storage.horizontal_partitioner import partition_column
from publish.contract import Contract
from publish.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONTRACT = "blogdata.contract"
"""Table property with the fingerprint of the contract the table was last brought up to."""
_CONSTRAINT = "delta.constraints."


class SchemaDrift(PlatformError):
    """A table and its contract disagree in a way that must not be mended without a person."""


def ensure(spark: SparkSession, lake: Lake, contract: Contract, *, engine: bool = True) -> None:
    """Create the dataset's table with the constraints of its contract, or add columns and constraints it lacks.

    Args:
        spark: The session.
        lake: The tables' root.
        contract: What is promised about the dataset.
        engine: Create it in one commit by the engine; otherwise by SQL, one commit a constraint.

    Raises:
        PartitionKeyRefused: A table partitioned like this would have too many partitions.
        SchemaDrift: A column changed its type or was removed from the contract.
        BehindAPointer: The dataset lives in members.
        MemberClosed: The table is a member that was published.
    """
    table = lake.caught_up(contract.dataset)
    path = lake.path(contract.dataset)
    if table is None and engine:
        _create(spark, path, contract)
        return
    members.refuse_direct(table, contract.dataset)
    known: dict[str, str | None] = dict(table.metadata().configuration) if table else {}
    absent = {
        name: expression
        for name, expression in constraints(contract).items()
        if _without_spaces(known.get(f"{_CONSTRAINT}{name}")) != _without_spaces(expression)
    }
    if known.get(CONTRACT) == contract.fingerprint and not absent:
        return
    if table is None:
        spark.sql(_create_statement(path, contract))
    else:
        _add_columns(spark, lake, contract)
    for name, expression in absent.items():
        if f"{_CONSTRAINT}{name}" in known:
            spark.sql(f"ALTER TABLE delta.`{path}` DROP CONSTRAINT IF EXISTS `{name}`")
        spark.sql(f"ALTER TABLE delta.`{path}` ADD CONSTRAINT `{name}` CHECK ({expression})")
    # Last, so that a crash in between leaves a table that is brought up to date again.
    listed = _listed({**_togetherness(contract), CONTRACT: contract.fingerprint})
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ({listed})")


def constraints(contract: Contract) -> dict[str, str]:
    """Give the CHECK constraints of a dataset's table: name to condition."""
    return {rule.name.lower(): rule.expression for rule in contract.rules}


def _without_spaces(condition: str | None) -> str | None:
    """Give what two texts of one condition have in common: Delta puts spaces around the tokens of one that SQL adds."""
    return None if condition is None else "".join(condition.split())


def _properties(contract: Contract) -> dict[str, str]:
    return {
        # A commit is idempotent for as long as its transaction identifier is remembered. One for each commit would grow
        # the log for ever; that of a stream is one for all of its batches, and the engine has it never expire.
        "delta.setTransactionRetentionDuration": "interval 7 days",
        **_togetherness(contract),
        **_retention(contract),
        **({"delta.enableDeletionVectors": "true"} if contract.marks_rows else {}),
        **metadata_enhancer.properties(contract),
    }


def _togetherness(contract: Contract) -> dict[str, str]:
    return {APPEARS_WITH: contract.appears_with} if contract.appears_with else {}


def _retention(contract: Contract) -> dict[str, str]:
    """Keep versions for as long as an execution may have to be merged on one of them again."""
    if contract.executed is None or contract.replay_limit is None:
        return {}
    kept = f"interval {(contract.executed.length * (contract.replay_limit + 1)).days + 1} days"
    return {"delta.deletedFileRetentionDuration": kept, "delta.logRetentionDuration": kept}


def _create(spark: SparkSession, path: str, contract: Contract) -> None:
    from pyspark.sql.types import DataType, StructField, StructType

    schema = StructType(
        [
            StructField(column.name, DataType.fromDDL(column.type), column.nullable, _described(column))
            for column in contract.columns
        ]
    )
    configuration = {
        **_properties(contract),
        **{f"{_CONSTRAINT}{name}": expression for name, expression in constraints(contract).items()},
        CONTRACT: contract.fingerprint,
    }
    writer = spark.range(0).write.format("contract-table").mode("append").option("schema", schema.json())
    if partition := partition_column(contract):
        writer = writer.option("partition", partition)
    writer.option("description", contract.description).option("configuration", json.dumps(configuration)).save(path)


def _described(column: Column) -> dict[str, str]:
    generated = {} if column.generated is None else {"delta.generationExpression": column.generated}
    return {"comment": column.description, **generated}


def _create_statement(path: str, contract: Contract) -> str:
    columns = ", ".join(
        f"`{column.name}` {column.type}"
        + ("" if column.generated is None else f" GENERATED ALWAYS AS ({column.generated})")
        + f"{'' if column.nullable else ' NOT NULL'} COMMENT {_literal(column.description)}"
        for column in contract.columns
    )
    partition = partition_column(contract)
    partitioned = f"PARTITIONED BY (`{partition}`)" if partition else ""
    return (
        f"CREATE TABLE IF NOT EXISTS delta.`{path}` ({columns}) USING delta {partitioned} "
        f"COMMENT {_literal(contract.description)} TBLPROPERTIES ({_listed(_properties(contract))})"
    )


def _listed(properties: Mapping[str, str]) -> str:
    return ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())


def _add_columns(spark: SparkSession, lake: Lake, contract: Contract) -> None:
    path = lake.path(contract.dataset)
    present = {field.name: field.dataType.simpleString() for field in lake.read(spark, contract.dataset).schema}
    wanted = {column.name: column for column in contract.columns}
    hold_to(present, {name: column.type for name, column in wanted.items()}, where=f"{contract.dataset} at {path}")
    added = [f"`{name}` {column.type}" for name, column in wanted.items() if name not in present]
    if added:
        spark.sql(f"ALTER TABLE delta.`{path}` ADD COLUMNS ({', '.join(added)})")


def hold_to(present: Mapping[str, str], wanted: Mapping[str, str], *, where: str) -> None:
    """Refuse a contract that removes a column of a table, or changes its type.

    Args:
        present: Column of the table to its Spark SQL type.
        wanted: Column of the contract to its Spark SQL type.
        where: The table, for the error.

    Raises:
        SchemaDrift: It does.
    """
    gone = sorted(set(present) - set(wanted))
    changed = sorted(name for name in wanted if name in present and _simple(wanted[name]) != _simple(present[name]))
    if gone or changed:
        raise SchemaDrift(
            what=f"the table and its contract disagree (removed: {gone or 'none'}, other type: {changed or 'none'})",
            where=where,
            next_step="restore the columns in the contract, or migrate the table before changing the contract",
        )


@lru_cache(maxsize=64)
def _simple(ddl: str) -> str:
    from pyspark.sql.types import DataType

    return DataType.fromDDL(ddl).simpleString()


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
