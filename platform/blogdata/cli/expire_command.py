"""`blogdata expire`: what is older than its contract keeps it leaves the tables and the landing zone."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from blogdata.cli.output import TextGrid, agreed, console, existing, say_json
from blogdata.evidence.events import EventLog
from blogdata.lake.lake import Lake
from blogdata.planning import clock
from blogdata.services.config import Settings

if TYPE_CHECKING:
    from blogdata.orchestration.expiry import Expired, Retention


def expire(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would leave")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Remove it without asking")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print every partition as JSON; removes with --yes")] = False,
) -> None:
    """Remove what is older than its contract keeps it, and count it as expired; the ledger still adds up.

    Partitions leave their tables whole, and what was computed from them stays. Their landed files are removed after
    them. The contracts say how long rows are kept (retention_days).
    """
    retention, now = _retention(existing()), clock.now()
    found = retention.look(now)
    if not as_json:
        _show(found, now)
    if not (found.rows_of or found.landed):
        if as_json:
            say_json(_as_json(found, done=False))
        return
    question = "remove these rows and their landed files for good?"
    wanted = not dry_run and (yes or (not as_json and agreed(question, otherwise="nothing was removed; do it: --yes")))
    left = retention.expire(now) if wanted else found
    if as_json:
        say_json(_as_json(left, done=wanted))
    elif wanted:
        rows = sum(sum(rows.values()) for rows in left.rows_of.values())
        console.print(f"expired: {rows:,} rows; landed hours and days removed: {len(left.landed):,}")


def _retention(settings: Settings) -> Retention:
    from assets.code import code
    from blogdata.orchestration.expiry import Retention
    from blogdata.publish.run import RunContext
    from quality.contracts import GRAPH
    from quality.contracts.streams import streamed_inputs
    from resources.zone import zone_of

    run = RunContext(run_id=str(uuid.uuid4()), job="", code_version=code().version, trigger="command:blogdata expire")
    return Retention(
        events=EventLog(Lake(root=str(settings.lake))),
        zone=zone_of(settings),
        graph=GRAPH,
        streams=streamed_inputs(settings.checkpoints),
        run=run,
    )


def _show(found: Expired, now: datetime) -> None:
    if not (found.rows_of or found.landed):
        console.print(f"nothing is older than its contract keeps it, on {now:%Y-%m-%d}")
        return
    table = TextGrid()
    for name in ("dataset", "partitions", "rows", "first", "last"):
        table.add_column(name, justify="right" if name in ("partitions", "rows") else "left", no_wrap=True)
    for dataset, rows in found.rows_of.items():
        table.add_row(dataset, f"{len(rows):,}", f"{sum(rows.values()):,}", min(rows), max(rows))
    console.print(table)
    if found.landed:
        console.print(f"{len(found.landed):,} landed hours and days of rows that have expired before")


def _as_json(found: Expired, *, done: bool) -> dict[str, object]:
    return {
        "removed": done,
        "rows": {dataset: dict(rows) for dataset, rows in found.rows_of.items()},
        "landed": [str(partition.folder) for partition in found.landed],
    }
