"""Full Loader: a source without a change column replaces its table whole, in one step nobody sees.

Problem: a small reference table records neither what changed nor when. Comparing row by row costs more than
reading all of it, and a table that is emptied and refilled is empty for every reader in between.

How it works: the whole source replaces the whole table in one commit (Data Overwrite, or a Proxy that keeps every
load). A reader sees yesterday's rows or today's, and time travel still returns yesterday's rows tomorrow. Before
anything is replaced, :func:`guard` compares the number of rows with the last load.

The trap: a source that has just been emptied, or is being written, loads without an error. An empty
reference table then empties every join downstream. The guard reports both counts and leaves the decision to a
person.

When not to use it: for sources that grow without bound or are too large for one load; use an Incremental
Loader there.

Source: Data Engineering Design Patterns, ch. 2.
"""

from __future__ import annotations

from blogdata.errors import PlatformError
from blogdata.errors.remedies import Remedy, Run

MIN_SHARE = 0.5
"""Smallest accepted load, as a share (0 to 1) of the last load's rows."""
MAX_MULTIPLE = 3.0
"""Largest accepted load, as a multiple of the last load's rows."""
ACCEPT_SIZE = "size"
"""Value of `--accept` that lets a load of implausible size through."""


class FullLoadRefused(PlatformError):
    """Raised when the source has too many or too few rows to replace the table without a person's approval."""


def guard(last_rows: int | None, rows: int, *, where: str) -> None:
    """Refuse a load whose number of rows is implausible.

    Args:
        last_rows: Rows of the last load; None or 0 when there was none.
        rows: Rows of this load.
        where: The dataset, for the error.

    Raises:
        FullLoadRefused: No rows, too few or too many.
    """
    last = last_rows or 0
    if rows == 0:
        problem = f"the source has 0 rows, the last load had {last}"
    elif last and rows < last * MIN_SHARE:
        problem = f"the source has {rows} rows, less than {MIN_SHARE:.0%} of the last load's {last}"
    elif last and rows > last * MAX_MULTIPLE:
        problem = f"the source has {rows} rows, more than {MAX_MULTIPLE:g} times the last load's {last}"
    else:
        return
    raise FullLoadRefused(
        what=problem,
        where=where,
        next_step=Remedy("nothing was replaced; look at the source, and if it is right: ", Run(accept=ACCEPT_SIZE)),
    )
