"""`blogdata maintain`: keeps the tables of the lake tidy, each when its files need it."""

from __future__ import annotations

import uuid
from dataclasses import asdict
from datetime import datetime, timezone
from typing import Annotated, Any

import typer

from blogdata.cli.output import DATASET, console, existing, say_error, say_json
from blogdata.errors import refuse_unknown
from blogdata.evidence.events import EventLog
from blogdata.lake.lake import Lake
from blogdata.orchestration.maintenance import OWN, Done, Due, Fault, Inspection, Upkeep, look, maintain
from blogdata.orchestration.upkeep import actions
from blogdata.publish.run import RunContext
from blogdata.publish.target import Engine
from blogdata.services.config import Settings
from quality.contracts import EVERY


def maintain_(
    datasets: Annotated[
        list[str] | None, typer.Argument(help="Only these, like silver.visits; otherwise all", show_default=False)
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what is due; nothing is changed")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print what is due, or was done, as JSON")] = False,
) -> None:
    """Compact tables with too many small files, and remove files that nobody needs; their logs tell, without Spark."""
    known = {contract.dataset: contract for contract in (*EVERY.values(), *OWN)}
    refuse_unknown(datasets or [], known, where="maintain")
    settings = existing()
    lake = Lake(root=str(settings.lake))
    seen = Inspection(lake=lake, events=EventLog(lake), now=datetime.now(timezone.utc))
    chosen = [contract for name, contract in known.items() if not datasets or name in datasets]
    steps = actions(EVERY.values())
    found = look(seen, steps, chosen) if dry_run else maintain(_upkeep(settings, seen), steps, chosen)
    faults: list[Fault] = []
    results: list[Due | Done] = []
    for one in found:
        if isinstance(one, Fault):
            faults.append(one)
        else:
            results.append(one)
        if not as_json:
            console.print(_line(one))
    if as_json:
        say_json([_as_json(one) for one in [*results, *faults]])
        raise typer.Exit(1 if faults else 0)
    for another in faults[1:]:
        say_error(another.error)
    if faults:
        raise faults[0].error
    if not results:
        console.print("nothing is due")


def _upkeep(settings: Settings, seen: Inspection) -> Upkeep:
    from assets.code_version import version
    from blogdata.cli.sql_command import session

    return Upkeep(
        lake=seen.lake,
        events=seen.events,
        now=seen.now,
        run=RunContext(
            run_id=f"maintain-{uuid.uuid4()}",
            job="maintain",
            code_version=version(),
            trigger="command:blogdata maintain",
        ),
        spark=lambda: session(settings),
        engine=Engine(settings.spark.writes),
    )


def _line(found: Due | Done | Fault) -> str:
    if isinstance(found, Fault):
        return f"{found.dataset:<{DATASET}} is left: {found.error.what}"
    if isinstance(found, Done):
        now = f"left, {found.left}" if found.left else f"now {found.files:,} files, {found.bytes:,} bytes"
        return f"{_line(found.due)}: {now}"
    where = f" in {len(found.partitions):,} partitions" if found.partitions not in ((), ("",)) else ""
    return f"{found.dataset:<{DATASET}} {found.action:<8} {found.files:,} files{where}, {found.bytes:,} bytes"


def _as_json(found: Due | Done | Fault) -> dict[str, Any]:
    if isinstance(found, Fault):
        error = {"what": found.error.what, "where": found.error.where, "next_step": found.error.next_step}
        return {"dataset": found.dataset, "error": error}
    if isinstance(found, Due):
        return asdict(found)
    after = {"left": found.left or None, "files_after": found.files, "bytes_after": found.bytes}
    return {**asdict(found.due), **after}
