"""Static Joiner: facts are enriched from reference data, as it was when the fact happened.

Problem: a fact contains only an identifier, its readers want the attributes behind it, and these change over time.
How it works: versions are valid for half-open ranges (`valid_from` <= t < `valid_to`, null is open), and a fact is
joined with the version valid at its own event time (:func:`join_as_of`), so a rerun next year yields the same version.
A fact without a match is kept, with a flag. Small reference data is broadcast, by the engine's own threshold.
The trap: joining rows that are computed again with what holds now, or with ranges closed at both ends: a fact on the
boundary is duplicated. Overlapping versions raise no error, either: the account of the joined dataset (as many rows as
facts) detects a duplicated fact.
When not to use it: when both sides change at the same time (Dynamic Joiner).
Source: "Data Engineering Design Patterns", ch. 5.
"""

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

_FOUND = "__found"


def join_as_of(
    facts: DataFrame, versions: DataFrame, on: Sequence[str], *, at: str, valid_from: str, valid_to: str, matched: str
) -> DataFrame:
    """Join every fact with the version of its key that was valid at its time; a null time matches nothing.

    The ranges of a key's versions do not overlap. `matched` is the name of the BOOLEAN column to add, never null.
    """
    added = [name for name in versions.columns if name not in on]
    left, right = facts.alias("fact"), versions.withColumn(_FOUND, F.lit(True)).alias("version")
    same_key = [F.col(f"fact.{name}") == F.col(f"version.{name}") for name in on]
    moment, start, end = F.col(f"fact.{at}"), F.col(f"version.{valid_from}"), F.col(f"version.{valid_to}")
    begun, unended = start.isNull() | (start <= moment), end.isNull() | (moment < end)
    held = reduce(Column.__and__, [*same_key, moment.isNotNull(), begun, unended])
    return left.join(right, held, "left").select(
        *(F.col(f"fact.{name}") for name in facts.columns),
        *(F.col(f"version.{name}") for name in added),
        F.coalesce(F.col(_FOUND), F.lit(False)).alias(matched),
    )
