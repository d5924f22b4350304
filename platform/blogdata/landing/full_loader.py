"""Full Loader: a source without a change column replaces its table whole, in one step nobody sees.

Problem: a small reference table records neither what changed nor when. Comparing row by row costs more than reading all
of it, and a table that is emptied and refilled is empty for every reader in between.
How it works: the whole source replaces the whole table in one commit (Data Overwrite, or a Proxy that keeps every
load): a reader sees yesterday's rows or today's, and time travel still returns yesterday's. Before anything is
replaced, :func:`guard` compares the number of rows with the last load. The rows of a table of a database are read at
one state of it and land as a JSON file, with the flag last (:func:`land`), so all that holds for delivered files holds
for them, and memory does not grow with the table.
The trap: a source that has just been emptied, or is being written, loads without an error, and empties every join
downstream. The guard reports both counts and leaves the decision to a person.
When not to use it: for sources that grow without bound or are too large for one load; use an Incremental Loader there.
Source: Data Engineering Design Patterns, ch. 2.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from blogdata.errors import ConfigurationError, PlatformError
from blogdata.errors.remedies import Remedy, Run
from blogdata.files import alone, hidden
from blogdata.landing.landed_formats import same_bytes
from blogdata.landing.landed_links import require_within
from blogdata.landing.readiness_marker import is_data, mark

if TYPE_CHECKING:
    import psycopg

    from blogdata.contract.column_types import Field

MIN_SHARE = 0.5
"""Smallest accepted load, as a share (0 to 1) of the last load's rows."""
MAX_MULTIPLE = 3.0
"""Largest accepted load, as a multiple of the last load's rows."""
ACCEPT_SIZE = "size"
"""Value of `--accept` that lets a load of implausible size through."""


class FullLoadRefused(PlatformError):
    """Raised when the source has too many or too few rows to replace the table without a person's approval."""


def guard(last_rows: int | None, rows: int, *, where: str) -> None:
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


@dataclass(frozen=True, kw_only=True)
class Load:
    file: Path
    rows: int
    changed: bool


def land(
    connection: psycopg.Connection,
    table: str,
    announced: Collection[Field],
    folder: Path,
    landing: Path,
    *,
    prepare: Callable[[Path], object] = lambda _: None,
) -> Load:
    """Land all rows of a table, read at one state of it, as a complete delivery."""
    from psycopg import sql

    from blogdata.landing import table_rows

    target = folder / f"{folder.parent.name}.json"
    require_within([target], landing)
    with alone(folder.parent):
        _require_no_others(target)
        partial = hidden(target)

        def write(source: table_rows.SourceTable) -> int:
            rows = 0
            with partial.open("wb") as file:
                for row in table_rows.read(connection, table_rows.as_json(source)):
                    file.write(row + b"\n")
                    rows += 1
                file.flush()
                os.fsync(file.fileno())
            return rows

        with table_rows.snapshot(connection, table):
            source = table_rows.describe(connection, table, announced)
            rows = table_rows.each_row(connection, source, sql.SQL("true"), write)
        prepare(partial)
        changed = not same_bytes(partial, target)
        if changed:
            partial.replace(target)
        else:
            partial.unlink()
        # Also after a crash between the file and its flag.
        mark(folder)
    return Load(file=target, rows=rows, changed=changed)


def _require_no_others(target: Path) -> None:
    entries = target.parent.iterdir() if target.parent.is_dir() else ()
    if others := sorted(path.name for path in entries if is_data(path.name) and path != target):
        raise ConfigurationError(
            what=f"the day has files of another producer: {', '.join(others[:3])}",
            where=str(target.parent),
            next_step="nothing was loaded; take them away, or take the table out of the section [tables]",
        )
