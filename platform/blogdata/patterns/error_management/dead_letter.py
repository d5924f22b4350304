"""Dead-Letter: rows that cannot be processed are set aside with every reason, and the rest goes on.

Problem: one unreadable row stops a job and everything downstream of it.
How it works: the reader of a line returns its values or *all* reasons to reject it, and never raises
(:mod:`blogdata.landing.json_lines`). The row stays with its bytes and its position; one with at least one reason is a
dead letter (:func:`is_rejected`).
The trap: error-safe functions turn a failure into a null, which looks like a missing value: a reader distinguishes
the two. A growing share of rejected rows hides a real failure: :func:`error_for_partition` keeps downstream datasets
from using such a partition. With its first reason alone, a producer mends one fault and has the next.
When not to use it: where a missing row is worse than a late job (balances, erasures), or where order matters:
a replayed row arrives after its successors.
Source: "Data Engineering Design Patterns", ch. 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from blogdata.errors import PlatformError
from blogdata.errors.remedies import Query, Remedy
from blogdata.publish.contract import LEAST_ROWS

if TYPE_CHECKING:
    from pyspark.sql import Column


class TooManyDeadLetters(PlatformError):
    """Raised when so many rows are rejected that the input itself must be at fault, not a few rows."""


def is_rejected() -> Column:
    """Build the condition that a judged row is a dead letter: `reasons` names at least one."""
    from pyspark.sql import functions as F

    return F.size("reasons") > 0


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
    for one in sorted((key for key in letters if key <= partition), reverse=True):
        rejected, of = letters[one]
        if one == partition and rejected <= max_share * of:
            return None
        if one == partition or of < LEAST_ROWS:
            rejected_rows, rows = rejected_rows + rejected, rows + of
            if rows >= LEAST_ROWS:
                return error_above_share(
                    rejected_rows=rejected_rows,
                    rows=rows,
                    max_share=max_share,
                    dataset=dataset,
                    part=partition if one == partition else f"{one}..{partition}",
                    selection=f"{column} = '{one}'"
                    if one == partition
                    else f"{column} BETWEEN '{one}' AND '{partition}'",
                    then=then,
                )
    return None
