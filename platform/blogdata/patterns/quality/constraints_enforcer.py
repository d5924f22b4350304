"""Constraints Enforcer: the table refuses rows that break its contract; the error lists all faults of a batch.

Problem: a producer sends a row without a user. The job is correct and its tests pass, but the row is stored, because
the rule was only written in a document.
How it works: :func:`blogdata.table.tables.enforce` turns the contract into constraints of the Delta table (types, NOT
NULL, CHECK, generated columns). Delta's own writers, such as Spark, hold to them if they bypass the platform; a dropped
constraint is restored before the next write. The platform's writes count the same conditions as audits, so an error
lists all faults of a batch, with the number of rows of each (Audit-Write-Audit-Publish). :func:`orphans` finds the rows
whose reference, as the contract declares it, does not exist: no Delta constraint can. That takes a join, so the Offline
Observer runs it beside the hot path.
The trap: a database stops at the first bad row, and the next attempt stops at the second; a batch can be fixed in one
go only when all its faults are known. And, unlike in most databases, a condition that is null counts as broken: a rule
about a nullable column must define the result for null.
When not to use it: for promises about many rows at once (sums, uniqueness, freshness); those are audits. Where single
bad rows must not stop the batch, a Dead-Letter removes them first.
Source: Data Engineering Design Patterns, ch. 9.
"""

from collections.abc import Mapping
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F


def orphans(facts: DataFrame, dimension: DataFrame, on: Mapping[str, str]) -> DataFrame:
    """Find the facts whose reference does not exist in the dimension; a null reference is intentional and allowed."""
    keys = dimension.select(*[F.col(name).alias(f"_{column}") for column, name in on.items()]).distinct()
    condition = reduce(Column.__and__, [facts[column] == keys[f"_{column}"] for column in on])
    return facts.dropna(subset=list(on)).join(keys, condition, "left_anti")
