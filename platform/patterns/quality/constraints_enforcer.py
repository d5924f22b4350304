"""Constraints Enforcer: the table refuses rows that break its contract; all faults of a batch are named.

Problem: a producer sends a row without a user. The job is correct, its tests pass, and the row is stored
all the same, because the only place that knew the rule was a document.

How it works: the contract becomes constraints of the Delta table (types, NOT NULL, CHECK, generated
columns), so that every writer is held to it, also one that goes round the platform. :func:`violations`
names everything that is wrong with a batch and how many rows it concerns; :func:`orphans` does what no
constraint of Delta can: it finds facts that point to nothing.

The trap: a database stops at the first bad row it meets, and the next attempt meets the second. A batch is
mended once only when all its faults are known; the constraints stay as the last line of defence. And a
condition that is null is broken, unlike in most databases: a rule about a nullable column must say what
holds when there is no value.

When not to use it: for promises about many rows at once (sums, uniqueness, freshness); those are audits.
Where single bad rows must not stop the batch, a Dead-Letter takes them out before the constraint sees them.

Source: Data Engineering Design Patterns, ch. 9.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from patterns.core.audit import Violation, judge, specify
from patterns.core.contract import Contract
from patterns.core.errors import ConfigurationError
from patterns.core.lake import Lake
from patterns.storage import tables

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyspark.sql import DataFrame, SparkSession

UNDECLARED = "partition_is_declared"


class Kind(str, Enum):
    """How a table enforces a promise."""

    TYPE = "type"
    NOT_NULL = "not_null"
    CHECK = "check"
    GENERATED = "generated"


@dataclass(frozen=True, kw_only=True)
class Constraint:
    """One promise as the table enforces it: a column with its type, or a condition with its name."""

    kind: Kind
    name: str
    definition: str


def constraints(contract: Contract, generated: Mapping[str, str] | None = None) -> Sequence[Constraint]:
    """Derive the constraints of a dataset's table from its contract.

    Args:
        contract: What is promised.
        generated: Column to the SQL expression Delta computes it with, or checks it against.

    Returns:
        Types, NOT NULL, generated columns and CHECK conditions.
    """
    found = [Constraint(kind=Kind.TYPE, name=c.name, definition=c.type) for c in contract.columns]
    found += [
        Constraint(kind=Kind.NOT_NULL, name=c.name, definition=f"{c.name} IS NOT NULL")
        for c in contract.columns
        if not c.nullable
    ]
    found += [
        Constraint(kind=Kind.GENERATED, name=name, definition=expression)
        for name, expression in (generated or {}).items()
    ]
    return [
        *found,
        *(Constraint(kind=Kind.CHECK, name=r.name, definition=r.expression) for r in contract.rules),
    ]


def enforce(
    spark: SparkSession,
    lake: Lake,
    contract: Contract,
    *,
    generated: Mapping[str, str] | None = None,
    engine: bool = True,
) -> None:
    """Give the dataset's table the constraints of its contract, creating it when it does not exist.

    Args:
        spark: The session.
        lake: The tables' root.
        contract: What is promised.
        generated: Column to the SQL expression that generates it; only for a table that is created.
        engine: The engine's jar is loaded, which creates a table in one commit.

    Raises:
        ConfigurationError: A generated column is not in the contract.
        SchemaDrift: The table has other columns or types.
    """
    unknown = sorted(set(generated or {}) - {column.name for column in contract.columns})
    if unknown:
        raise ConfigurationError(
            what=f"generated columns that the contract does not declare: {', '.join(unknown)}",
            where=contract.dataset,
            next_step="declare the columns in the contract, or correct their names",
        )
    if generated and lake.table(contract.dataset) is None:
        columns = tuple(
            replace(column, type=f"{column.type} GENERATED ALWAYS AS ({generated[column.name]})")
            if column.name in generated
            else column
            for column in contract.columns
        )
        tables.ensure(spark, lake, replace(contract, columns=columns), engine=False)
    tables.ensure(spark, lake, contract, engine=engine)


def missing(lake: Lake, contract: Contract) -> Sequence[Constraint]:
    """Give the promises a dataset's table does not enforce, from its log alone; all without a table."""
    parts = lake.parts(contract.dataset)
    absent = [_absent(part.table, contract) for part in parts] if parts else [set(constraints(contract))]
    return [item for item in constraints(contract) if any(item in found for found in absent)]


def _absent(table: DeltaTable, contract: Contract) -> set[Constraint]:
    known = dict(table.metadata().configuration)
    fields = {field.name: field for field in table.schema().fields}
    absent = set()
    for item in constraints(contract):
        there = item.name in fields
        if item.kind is Kind.NOT_NULL:
            there = there and not fields[item.name].nullable
        elif item.kind is Kind.CHECK:
            there = known.get(f"delta.constraints.{item.name.lower()}") == item.definition
        if not there:
            absent.add(item)
    return absent


def violations(frame: DataFrame, contract: Contract, partitions: Sequence[str] | None = None) -> Sequence[Violation]:
    """List everything that is wrong with a batch, in one pass over it.

    Args:
        frame: Rows with the columns of the contract.
        contract: What is promised.
        partitions: The batch's partitions; a row of another one is a violation. None: any may occur.

    Returns:
        One violation per broken promise and partition; empty when the batch may be written.
    """
    declared = partitions if contract.partitioning else None
    found = judge(frame, specify(contract, declared or (), {}, {})).violations
    return [item for item in found if item.rule != UNDECLARED or declared is not None]


def orphans(facts: DataFrame, dimension: DataFrame, on: Mapping[str, str]) -> DataFrame:
    """Give the facts that point to nothing; a fact whose reference is null points nowhere on purpose.

    Args:
        facts: Rows with references.
        dimension: Rows that are referred to.
        on: Column of the facts to the column of the dimension it refers to.

    Returns:
        Whole rows of the facts.
    """
    from pyspark.sql import functions as F

    keys = dimension.select(*[F.col(there).alias(f"_{here}") for here, there in on.items()]).distinct()
    condition = F.lit(True)
    for here in on:
        condition = condition & (facts[here] == keys[f"_{here}"])
    return facts.dropna(subset=list(on)).join(keys, condition, "left_anti")


def referential(facts: DataFrame, dimension: DataFrame, on: Mapping[str, str]) -> Sequence[Violation]:
    """Audit references: the number of facts that point to nothing, or no violation."""
    found = orphans(facts, dimension, on).count()
    if not found:
        return []
    name = "references." + "+".join(on)
    detail = ", ".join(f"{here} -> {there}" for here, there in on.items())
    return [Violation(rule=name, partition="", detail=detail, found=found)]
