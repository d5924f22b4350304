"""`blogdata ledger`: rows in, rows out, and every reason in between; exit code 1 when a row is unaccounted for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.text import Text

from blogdata.cli.output import (
    NOTHING_PUBLISHED,
    Json,
    TextGrid,
    console,
    existing,
    is_new,
    not_published,
    say_error,
    say_json,
)
from blogdata.contract.publication import Entry
from blogdata.contract.writes import Feed
from blogdata.deliver import partner
from blogdata.errors import PlatformError, refuse_unknown
from blogdata.ledger import ledger as core
from blogdata.ledger.events import EVENTS, EventLog
from blogdata.ledger.ledger import LedgerLine
from blogdata.operate.config import Settings
from blogdata.table.faults import DataFileDamaged, LogDamaged
from blogdata.table.lake import Lake
from quality.contracts import EVERY, SERVED


def ledger(
    dataset: Annotated[
        str | None, typer.Argument(help="Show the partitions of one dataset, like silver.visits", show_default=False)
    ] = None,
    as_json: Json = False,
) -> None:
    """Show that nothing is lost: rows in = rows out + what was left out."""
    feeds = [name for name, contract in SERVED.items() if isinstance(contract.write, Feed)]
    refuse_unknown([dataset] if dataset else [], [*EVERY, *feeds], where="ledger")
    settings = existing()
    lake = Lake(root=str(settings.lake))
    events = EventLog(lake)
    chosen = [contract for name, contract in EVERY.items() if dataset in (None, name)]
    lines: dict[str, Sequence[LedgerLine]] = {}
    damaged: list[PlatformError] = []
    for contract in chosen:
        try:
            lines[contract.dataset] = core.audit(lake, events, contract)
        except (LogDamaged, DataFileDamaged) as error:
            if error.where == EVENTS:
                # Nothing adds up without it.
                raise
            damaged.append(error)
    lines |= {name: _sent(settings, name) for name in feeds if dataset in (None, name)}
    if as_json:
        damages = [{"dataset": fault.where, "balanced": False, "problem": fault.what} for fault in damaged]
        say_json([*(_as_json(line) for audited in lines.values() for line in audited), *damages])
    elif any(lines.values()):
        _show(lines, partitions=dataset is not None)
    elif dataset is not None and not damaged:
        raise not_published(lake, dataset)
    elif not damaged:
        console.print(NOTHING_PUBLISHED if is_new(settings) else "nothing is published yet; compute it: blogdata run")
    for fault in damaged:
        say_error(fault)
    if damaged or any(not line.balanced for audited in lines.values() for line in audited):
        raise typer.Exit(1)


def _sent(settings: Settings, dataset: str) -> list[LedgerLine]:
    sent = []
    for line in partner.outbox(settings).lines():
        delivered = line.states.get("delivered", 0)
        entry = Entry(
            dataset=dataset,
            partition=line.partition,
            version=int(line.source.rpartition(":")[2]),
            rows_in=line.rows_in,
            rows_out=delivered,
            reasons={"private": line.private, **{name: n for name, n in line.states.items() if name != "delivered"}},
        )
        problem = f"{line.missing} rows are not accounted for" if line.missing else None
        sent.append(LedgerLine(entry=entry, rows_there=delivered, problem=problem))
    return sent


def _as_json(line: LedgerLine) -> dict[str, Any]:
    entry = line.entry
    return {
        "dataset": entry.dataset,
        "partition": entry.partition or None,
        "rows_in": entry.rows_in,
        "rows_out": entry.rows_out,
        "reasons": dict(entry.reasons),
        "rows_there": line.rows_there,
        "table_version": entry.version,
        **({"added": asdict(entry.added)} if entry.added else {}),
        "run_id": entry.run_id,
        "balanced": line.balanced,
        "problem": line.problem,
    }


def _show(lines: dict[str, Sequence[LedgerLine]], *, partitions: bool) -> None:
    table = TextGrid()
    table.add_column("dataset", no_wrap=True)
    for name in ("partition" if partitions else "partitions", "rows in", "rows out"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("left out, by reason")
    table.add_column("", no_wrap=True)
    for dataset, audited in lines.items():
        if not audited:
            continue
        if partitions:
            for line in audited:
                _row(table, dataset, line.entry.partition or "whole", [line])
        else:
            _row(table, dataset, str(len(audited)), audited)
    console.print(table)
    for audited in lines.values():
        for line in audited:
            if line.problem:
                console.print(f"{line.entry.dataset} {line.entry.partition}: {line.problem}", style="red")


def _row(table: TextGrid, dataset: str, partition: str, lines: Sequence[LedgerLine]) -> None:
    reasons: Counter[str] = Counter()
    for line in lines:
        reasons.update(line.entry.reasons)
    table.add_row(
        dataset,
        partition,
        f"{sum(line.entry.rows_in for line in lines):,}",
        f"{sum(line.entry.rows_out for line in lines):,}",
        ", ".join(_in_words(reason, rows) for reason, rows in sorted(reasons.items()) if rows) or "-",
        Text("adds up", "green") if all(line.balanced for line in lines) else Text("DOES NOT ADD UP", "red"),
    )


def _in_words(reason: str, rows: int) -> str:
    """Say what a figure of an account counts: one below zero counts rows that the dataset has beyond its rows in."""
    return f"{abs(rows):,} {reason}" + (" added" if rows < 0 else "")
