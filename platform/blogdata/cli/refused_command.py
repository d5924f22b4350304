"""`blogdata refused`: the batches that failed an audit, kept as tables to look at until they expire."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from blogdata.cli.output import TextGrid, console, existing, say_json
from blogdata.cli.remedies import command
from blogdata.errors.remedies import Query
from blogdata.lake.lake import Lake
from blogdata.publish import refused as core
from blogdata.publish.refused import RefusedBatch


def refused(
    as_json: Annotated[bool, typer.Option("--json", help="Print the batches as JSON")] = False,
) -> None:
    """List the batches that failed an audit; each is a table to look at for two weeks."""
    batches = core.kept(Lake(root=str(existing().lake)))
    if as_json:
        say_json([_as_json(batch) for batch in batches])
    else:
        _show(batches)


def _as_json(batch: RefusedBatch) -> dict[str, Any]:
    return {
        "table": batch.name,
        "dataset": batch.dataset,
        "partitions": list(batch.partitions),
        "violations": list(batch.violations),
        "rows": batch.rows,
        "run_id": batch.run_id,
        "refused_at": batch.refused_at.isoformat(timespec="seconds"),
        "kept_until": batch.kept_until.isoformat(timespec="seconds"),
    }


def _show(batches: Sequence[RefusedBatch]) -> None:
    if not batches:
        console.print("no refused batch is kept")
        return
    table = TextGrid()
    for name in ("table", "partitions", "why"):
        table.add_column(name)
    table.add_column("rows", justify="right")
    table.add_column("kept until")
    for batch in batches:
        span = ", ".join(batch.partitions[:3]) + (" …" if len(batch.partitions) > 3 else "")
        table.add_row(
            batch.name,
            span or "whole",
            "; ".join(batch.violations[:3]),
            f"{batch.rows:,}",
            f"{batch.kept_until:%Y-%m-%d %H:%M}",
        )
    console.print(table)
    newest = Query(sql=f"SELECT * FROM {batches[-1].name}")
    console.print(f"look at one:  {command(newest)}")
