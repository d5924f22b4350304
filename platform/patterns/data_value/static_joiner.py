"""Static Joiner: facts are enriched from reference data, as it was when the fact happened.

Problem: a fact knows an identifier, its readers want what stands behind it; and what stands behind it
changes.
How it works: versions hold for half-open ranges (`valid_from` <= t < `valid_to`, null is open), and a fact
takes the one that held at its own time, so the same fact gets the same version next year. Before the join the
versions of a key are made disjoint: one ends, at the latest, where the next begins. So a join never gives
more rows than facts, whatever is wrong with the versions. A fact without a match stays, and says so. Small
reference data is broadcast, by the engine's own threshold.
The trap: joining at the time of processing, or with ranges closed at both ends: the fact on the boundary
comes out twice. Versions that overlap give no error either: :func:`join_as_of` marks such a fact if asked,
:func:`overlapping` lists the versions, :func:`check` refuses them.
When not to use it: when both sides move at once (Dynamic Joiner).
Source: "Data Engineering Design Patterns", ch. 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from patterns.core.errors import PlatformError

_START, _END, _UNTIL, _FOUND = "__start", "__end", "__until", "__found"
_ALWAYS = "0001-01-01T00:00:00Z"
_NEVER = "9999-12-31T00:00:00Z"


class ColumnClash(PlatformError):
    """A column of the reference data would hide a column of the facts."""


class OverlappingVersions(PlatformError):
    """A key has two versions that hold at one time."""


def join_as_of(
    facts: DataFrame,
    versions: DataFrame,
    on: Sequence[str],
    *,
    at: str,
    valid_from: str,
    valid_to: str,
    known: str,
    ambiguous: str | None = None,
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
        ambiguous: Name of a BOOLEAN to add: an earlier version held as well, and the later one was taken;
            never null.
        disjoint: The caller vouches that no two versions of a key hold at one time; saves a sort of the
            versions.

    Returns:
        One row per fact: its columns, the versions' columns except `on` (null without a match), and the
        markers.

    Raises:
        ColumnClash: A column of the versions, or a marker, has the name of a column of the facts.
    """
    markers = [known] if ambiguous is None else [known, ambiguous]
    added = _added(facts, versions, on, markers)
    ranges = _ranges(versions, on, valid_from, valid_to, disjoint)
    left, right = facts.alias("fact"), ranges.alias("version")
    same_key = [F.col(f"fact.{name}") == F.col(f"version.{name}") for name in on]
    moment = F.col(f"fact.{at}")
    held = reduce(Column.__and__, same_key) & (F.col(_START) <= moment) & (moment < F.col(_END))
    found = F.coalesce(F.col(_FOUND), F.lit(False))
    marks = [found, F.coalesce(moment < F.col(_UNTIL), F.lit(False))]
    return left.join(right, held, "left").select(
        *(F.col(f"fact.{name}") for name in facts.columns),
        *(F.col(f"version.{name}") for name in added),
        *(mark.alias(name) for mark, name in zip(marks, markers, strict=False)),
    )


def _ranges(versions: DataFrame, on: Sequence[str], valid_from: str, valid_to: str, disjoint: bool) -> DataFrame:
    """Give every version the range for which it is taken, and until when an earlier one held."""
    start = F.coalesce(F.col(valid_from), F.lit(_ALWAYS).cast("timestamp"))
    end = F.coalesce(F.col(valid_to), F.lit(_NEVER).cast("timestamp"))
    ranges = versions.withColumns({_START: start, _END: end, _FOUND: F.lit(True)})
    if disjoint:
        return ranges.withColumn(_UNTIL, F.lit(None).cast("timestamp"))
    by_start = Window.partitionBy(*on).orderBy(_START, _END)
    before = by_start.rowsBetween(Window.unboundedPreceding, -1)
    # An empty range must not cut the range of another version short.
    lasting = ranges.where(F.col(_START) < F.col(_END))
    return lasting.withColumns(
        {_UNTIL: F.max(_END).over(before), _END: F.least(F.col(_END), F.lead(_START).over(by_start))}
    )


def overlapping(versions: DataFrame, on: Sequence[str], *, valid_from: str, valid_to: str) -> DataFrame:
    """Find the versions that begin while an earlier version of their key still holds.

    Args:
        versions: One row per version.
        on: Key columns.
        valid_from: First instant of a version; null means it always held.
        valid_to: First instant at which it no longer holds; null means it still does.

    Returns:
        The offending rows of `versions`, in no order.
    """
    ranges = _ranges(versions, on, valid_from, valid_to, disjoint=False)
    return ranges.where(F.col(_START) < F.col(_UNTIL)).select(*versions.columns)


def check(versions: DataFrame, on: Sequence[str], *, valid_from: str, valid_to: str, where: str) -> None:
    """Refuse versions of which two hold at one time; reads the versions.

    Args:
        versions: One row per version.
        on: Key columns.
        valid_from: First instant of a version.
        valid_to: First instant at which it no longer holds; null means it still does.
        where: The dataset, for the message.

    Raises:
        OverlappingVersions: At least one key has overlapping versions.
    """
    found = (
        overlapping(versions, on, valid_from=valid_from, valid_to=valid_to).select(*on).distinct().limit(5).collect()
    )
    if found:
        keys = "; ".join(", ".join(str(value) for value in row) for row in found)
        raise OverlappingVersions(
            what=f"two versions of a key hold at one time, for {keys}" + (" and maybe more" if len(found) == 5 else ""),
            where=where,
            next_step=f"let each version end ({valid_to}) where the next one begins ({valid_from})",
        )


def _added(facts: DataFrame, reference: DataFrame, on: Sequence[str], markers: Sequence[str]) -> list[str]:
    added = [name for name in reference.columns if name not in on]
    taken = sorted(({*added, *markers} & set(facts.columns)) | (set(added) & set(markers)))
    if taken:
        raise ColumnClash(
            what=f"the join would add {', '.join(taken)}, which is already there",
            where=f"join on {', '.join(on)}",
            next_step="select or rename the columns of the reference data before the join",
        )
    return added
