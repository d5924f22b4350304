"""`blogdata maintain`: keeps the tables of the lake tidy, each when its files need it."""

from __future__ import annotations

import uuid
from dataclasses import asdict
from datetime import datetime, timezone
from typing import Annotated, Any

import typer

from blogdata.cli.output import DATASET, console, existing, say_json
from blogdata.errors import refuse_unknown
from blogdata.evidence.events import EventLog
from blogdata.lake.lake import Lake
from blogdata.orchestration.maintenance import OWN, Done, Due, Inspection, Upkeep, look, maintain
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
    if dry_run:
        found = look(seen, actions(EVERY.values()), chosen)
        if as_json:
            say_json([asdict(due) for due in found])
        for due in () if as_json else found:
            console.print(_line(due))
        _say_nothing(found, as_json)
        return
    results = []
    for done in maintain(_upkeep(settings, seen), actions(EVERY.values()), chosen):
        results.append(done)
        if not as_json:
            console.print(_outcome(done))
    if as_json:
        say_json([_as_json(done) for done in results])
    _say_nothing(results, as_json)


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


def _say_nothing(found: list[Any], as_json: bool) -> None:
    if not found and not as_json:
        console.print("nothing is due")


def _line(due: Due) -> str:
    where = f" in {len(due.partitions):,} partitions" if due.partitions != ("",) and due.partitions else ""
    return f"{due.dataset:<{DATASET}} {due.action:<8} {due.files:,} files{where}, {due.bytes:,} bytes"


def _outcome(done: Done) -> str:
    if done.left:
        return f"{_line(done.due)}: left, {done.left}"
    return f"{_line(done.due)}: now {done.files:,} files, {done.bytes:,} bytes"


def _as_json(done: Done) -> dict[str, Any]:
    flat = asdict(done)
    return {**flat.pop("due"), "left": flat["left"] or None, "files_after": done.files, "bytes_after": done.bytes}
