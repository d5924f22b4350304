"""Full Loader: a source without a change column replaces its table whole, in one step nobody sees.

Problem: a small reference table says neither what changed nor when. Comparing row by row costs more than
reading all of it, and a table that is emptied and filled again is empty for everybody who reads in between.

How it works: the whole source replaces the whole table in one commit; a reader sees yesterday's rows or
today's, and time travel still gives yesterday's tomorrow. Before anything is replaced, :func:`guard`
compares the number of rows with the last load.

The trap: a source that has just been emptied, or is being written, loads without an error. An empty
reference table then empties every join downstream. The guard says both counts and leaves the decision to a
person.

When not to use it: for sources that grow without end or beyond what a load may take; then an Incremental
Loader.

Source: Data Engineering Design Patterns, ch. 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from patterns.core.commit import WHOLE_TABLE, Commit
from patterns.core.errors import PlatformError
from patterns.idempotency.data_overwrite import overwrite_table
from patterns.quality.audit_write_audit_publish import Provenance, Target

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MIN_SHARE = 0.5
MAX_MULTIPLE = 3.0
SIZE = "size"
"""What a person accepts who lets a load of an unbelievable size through."""


class FullLoadRefused(PlatformError):
    """The source has so many or so few rows that it must not replace the table without a person."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How far a load may be from the last one.

    Args:
        min_share: Least share of the last load's rows, 0 to 1.
        max_multiple: Greatest multiple of the last load's rows.
    """

    min_share: float = MIN_SHARE
    max_multiple: float = MAX_MULTIPLE


LIMITS = Limits()


def guard(
    last_rows: int | None,
    rows: int,
    min_share: float = MIN_SHARE,
    max_multiple: float = MAX_MULTIPLE,
    *,
    where: str = "full load",
) -> None:
    """Refuse a load whose number of rows is not believable.

    Args:
        last_rows: Rows of the last load; None or 0 when there was none.
        rows: Rows of this load.
        min_share: Least share of the last load's rows.
        max_multiple: Greatest multiple of the last load's rows.
        where: The dataset, for the error.

    Raises:
        FullLoadRefused: No rows, too few or too many.
    """
    last = last_rows or 0
    if rows == 0:
        problem = f"the source has 0 rows, the last load had {last}"
    elif last and rows < last * min_share:
        problem = f"the source has {rows} rows, less than {min_share:.0%} of the last load's {last}"
    elif last and rows > last * max_multiple:
        problem = f"the source has {rows} rows, more than {max_multiple:g} times the last load's {last}"
    else:
        return
    raise FullLoadRefused(
        what=problem,
        where=where,
        next_step="nothing was replaced; look at the source, and if it is right: "
        f"blogdata run --accept {SIZE} (in the UI: the run's tag blogdata/accept={SIZE})",
    )


def load(frame: DataFrame, target: Target, provenance: Provenance, *, limits: Limits = LIMITS) -> Commit:
    """Replace a whole table by its source, if the number of rows is believable.

    Args:
        frame: All rows of the source, with the columns of the contract.
        target: The table, its contract and the run.
        provenance: Inputs and accounts; rows of the source are counted when there is no account of it.
        limits: How far the load may be from the last one.

    Returns:
        The commit.

    Raises:
        FullLoadRefused: No rows, too few or too many; nothing was replaced.
        PlatformError: As `publish`.
    """
    dataset = target.contract.dataset
    account = provenance.accounts.get(WHOLE_TABLE)
    rows = frame.count() if account is None else account.rows_in
    last = target.lake.rows(dataset, None).get(WHOLE_TABLE)
    guard(last, rows, limits.min_share, limits.max_multiple, where=dataset)
    if account is None:
        # Held against what is written: the source may change between the count and the load.
        provenance = replace(provenance, expected=_with_rows(provenance.expected, rows))
    return overwrite_table(frame, target, provenance)


def _with_rows(expected: Mapping[str, Mapping[str, int]], rows: int) -> dict[str, Mapping[str, int]]:
    return {**expected, WHOLE_TABLE: {**expected.get(WHOLE_TABLE, {}), "rows": rows}}
