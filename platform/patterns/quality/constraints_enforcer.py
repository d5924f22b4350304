"""Constraints Enforcer: the table refuses rows that break its contract; all faults of a batch are named.

Problem: a producer sends a row without a user. The job is correct, its tests pass, and the row is stored
all the same, because the only place that knew the rule was a document.

How it works: :func:`enforce` makes the contract constraints of the Delta table (types, NOT NULL, CHECK, generated
columns), so that every writer is held to it, also one that goes round the platform; a constraint that somebody has
dropped is there again before the next write. When Delta refuses a batch, the audit names everything that is wrong
with it, and how many rows each fault concerns (Audit-Write-Audit-Publish). :func:`orphans` does what no constraint of
Delta can: it finds facts that point to nothing.

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
from typing import TYPE_CHECKING

from lake.lake import Lake
from patterns.storage import tables
from publish.audit import Violation
from publish.contract import Contract

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def enforce(spark: SparkSession, lake: Lake, contract: Contract, *, engine: bool = True) -> None:
    """Give the dataset's table the constraints of its contract, creating it when it does not exist.

    Args:
        spark: The session.
        lake: The tables' root.
        contract: What is promised.
        engine: The engine's jar is loaded, which creates a table in one commit.

    Raises:
        PlatformError: As `tables.ensure`.
    """
    tables.ensure(spark, lake, contract, engine=engine)


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
