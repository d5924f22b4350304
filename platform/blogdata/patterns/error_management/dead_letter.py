"""Dead-Letter: rows that cannot be processed are set aside with every reason, and the rest goes on.

Problem: one unreadable row stops a job and everything downstream of it.
How it works: each rule is a Column that is true for a bad row. A row keeps the names of *all* rules it breaks, in
rule order (:func:`reasons`); a row that breaks at least one is a dead letter (:func:`is_rejected`). One pass, no
Python worker.
The trap: error-safe functions turn a failure into a null, which looks like a missing value (:func:`unreadable`
distinguishes the two). A growing share of rejected rows hides a real failure: :func:`error_for_partition` keeps
downstream datasets from using such a partition. A condition that is null is not true: write rules that stay definite
when a column is null.
When not to use it: where a missing row is worse than a late job (balances, erasures), or where order matters:
a replayed row arrives after its successors.
Source: "Data Engineering Design Patterns", ch. 3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from blogdata.errors import PlatformError
from blogdata.errors.remedies import Query, Remedy
from blogdata.publish.contract import LEAST_ROWS

if TYPE_CHECKING:
    from pyspark.sql import Column


@dataclass(frozen=True, kw_only=True)
class RejectRule:
    """One way for a row to be bad."""

    name: str
    condition: Column


class TooManyDeadLetters(PlatformError):
    """Raised when so many rows are rejected that the input itself must be at fault, not a few rows."""


def reasons(rules: Sequence[RejectRule]) -> Column:
    """Build the array of the names of all broken rules, in rule order; empty for a good row."""
    from pyspark.sql import Column
    from pyspark.sql import functions as F

    none = F.array().cast("array<string>")
    if not rules:
        return none
    # Nearly all rows are good: do not build an array of nulls for them only to filter it empty.
    broken = reduce(Column.__or__, [F.coalesce(rule.condition, F.lit(False)) for rule in rules])
    named = F.array(*[F.when(rule.condition, F.lit(rule.name)) for rule in rules])
    return F.when(broken, F.array_except(named, F.array(F.lit(None).cast("string")))).otherwise(none)


def is_rejected() -> Column:
    """Build the condition that a judged row is a dead letter: `reasons` names at least one."""
    from pyspark.sql import functions as F

    return F.size("reasons") > 0


def unreadable(name: str, *, source: Column, result: Column) -> RejectRule:
    """Build the rule for an error-safe function: its input is not null, but its result is."""
    return RejectRule(name=name, condition=source.isNotNull() & result.isNull())


def error_above_share(
    *, rejected_rows: int, rows: int, max_share: float, dataset: str, part: str, selection: str, then: str | Remedy
) -> TooManyDeadLetters | None:
    """Return the error of too large a share of rejected rows; None if at most `max_share` (0 to 1) are."""
    where = f"{dataset} {part}"
    if rejected_rows <= max_share * rows:
        return None
    return TooManyDeadLetters(
        what=f"{rejected_rows} of {rows} rows ({rejected_rows / rows:.1%}) are rejected, {max_share:.1%} is accepted",
        where=where,
        next_step=Remedy(
            "they are kept; why they are rejected: ", query(dataset, selection), "; mend the producer, then ", then
        ),
    )


def query(dataset: str, selection: str) -> Query:
    """Build the query that counts rejected rows by their reasons."""
    return Query(sql=f"SELECT reasons, count(*) FROM {dataset} WHERE {selection} GROUP BY reasons")


def error_for_partition(
    partition: str,
    letters: Mapping[str, tuple[int, int]],
    *,
    max_share: float,
    dataset: str,
    column: str,
    then: str | Remedy,
) -> TooManyDeadLetters | None:
    """Check whether a partition has too many rejected rows to be used downstream.

    Returns:
        The error to raise, or None. A partition with fewer than :data:`LEAST_ROWS` rows is judged together with the
        small ones before it, and is never at fault if its own share is accepted.
    """
    rejected_rows = rows = 0
    judged: list[str] = []
    seen = sorted((key for key in letters if key <= partition), reverse=True)
    for one in seen:
        rejected, of = letters[one]
        if one == partition and rejected <= max_share * of:
            return None
        if one == partition or of < LEAST_ROWS:
            judged.append(one)
            rejected_rows, rows = rejected_rows + rejected, rows + of
            if rows >= LEAST_ROWS:
                return error_above_share(
                    rejected_rows=rejected_rows,
                    rows=rows,
                    max_share=max_share,
                    dataset=dataset,
                    part=partition if one == partition else f"{one}..{partition}",
                    selection=_selection(column, judged, gapless=judged == seen[: len(judged)]),
                    then=then,
                )
    return None


def _selection(column: str, judged: Sequence[str], *, gapless: bool) -> str:
    """Build the SQL condition that selects the judged partitions, passed newest first."""
    if len(judged) == 1:
        return f"{column} = '{judged[0]}'"
    if gapless:
        return f"{column} BETWEEN '{judged[-1]}' AND '{judged[0]}'"
    return f"{column} IN ({', '.join(repr(key) for key in reversed(judged))})"
