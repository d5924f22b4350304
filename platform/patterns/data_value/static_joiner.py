"""Static Joiner: facts are enriched from reference data, as it was when the fact happened.

Problem: a fact knows an identifier, its readers want what stands behind it; and what stands behind it
changes.
How it works: versions hold for half-open ranges (`valid_from` <= t < `valid_to`, null is open), and a fact
takes the one that held at its own time, so the same fact gets the same version next year. Before the join the
versions of a key are made disjoint: one ends, at the latest, where the next begins. So a join never gives
more rows than facts, whatever is wrong with the versions. A fact without a match stays, and says so. Small
reference data is broadcast, by the engine's own threshold.
The trap: joining at the time of processing, or with ranges closed at both ends: the fact on the boundary
comes out twice. Versions that overlap give no error either: the account of the joined dataset, as many rows as facts,
is what tells that a fact came out twice.
When not to use it: when both sides move at once (Dynamic Joiner).
Source: "Data Engineering Design Patterns", ch. 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from errors import PlatformError

_START, _END, _FOUND = "__start", "__end", "__found"
_ALWAYS = "0001-01-01T00:00:00Z"
_NEVER = "9999-12-31T00:00:00Z"


class ColumnClash(PlatformError):
    """A column of the reference data would hide a column of the facts."""


def join_as_of(
    facts: DataFrame,
    versions: DataFrame,
    on: Sequence[str],
    *,
    at: str,
    valid_from: str,
    valid_to: str,
    known: str,
    disjoint: bool = False,
) -> DataFrame:
    """Join every fact with the version of its key that held at its time.

    Args:
        facts: One row per fact.
        versions: One row per version, with the `on` columns and both ends of its range (TIMESTAMP).
        on: Key columns, of one name on both sides; a null matches nothing.
        at: TIMESTAMP of the fact; a null matches nothing.
        valid_from: First instant of a version; null means it always held.
        valid_to: First instant at which it no longer holds; null means it still does.
        known: Name of the BOOLEAN to add: a version held; never null.
        disjoint: The caller vouches that no two versions of a key hold at one time; saves a sort of the
            versions. Where that is not true a fact comes out twice, which the account of its dataset refuses.

    Returns:
        One row per fact: its columns, the versions' columns except `on` (null without a match), and `known`.

    Raises:
        ColumnClash: A column of the versions, or `known`, has the name of a column of the facts.
    """
    added = _added(facts, versions, on, known)
    ranges = _ranges(versions, on, valid_from, valid_to, disjoint)
    left, right = facts.alias("fact"), ranges.alias("version")
    same_key = [F.col(f"fact.{name}") == F.col(f"version.{name}") for name in on]
    moment = F.col(f"fact.{at}")
    held = reduce(Column.__and__, same_key) & (F.col(_START) <= moment) & (moment < F.col(_END))
    return left.join(right, held, "left").select(
        *(F.col(f"fact.{name}") for name in facts.columns),
        *(F.col(f"version.{name}") for name in added),
        F.coalesce(F.col(_FOUND), F.lit(False)).alias(known),
    )


def _ranges(versions: DataFrame, on: Sequence[str], valid_from: str, valid_to: str, disjoint: bool) -> DataFrame:
    """Give every version the range for which it is taken: up to the next one of its key."""
    start = F.coalesce(F.col(valid_from), F.lit(_ALWAYS).cast("timestamp"))
    end = F.coalesce(F.col(valid_to), F.lit(_NEVER).cast("timestamp"))
    ranges = versions.withColumns({_START: start, _END: end, _FOUND: F.lit(True)})
    if disjoint:
        return ranges
    by_start = Window.partitionBy(*on).orderBy(_START, _END)
    # An empty range must not cut the range of another version short.
    lasting = ranges.where(F.col(_START) < F.col(_END))
    return lasting.withColumn(_END, F.least(F.col(_END), F.lead(_START).over(by_start)))


def _added(facts: DataFrame, reference: DataFrame, on: Sequence[str], known: str) -> list[str]:
    added = [name for name in reference.columns if name not in on]
    taken = sorted(({*added, known} & set(facts.columns)) | ({known} & set(added)))
    if taken:
        raise ColumnClash(
            what=f"the join would add {', '.join(taken)}, which is already there",
            where=f"join on {', '.join(on)}",
            next_step="select or rename the columns of the reference data before the join",
        )
    return added
