"""`blogdata feed`: what the partner has, sending, settling a request, and a partner to try with."""

from __future__ import annotations

import time
from collections import Counter
from typing import Annotated, Any

import typer

from blogdata.cli.output import TextGrid, console, existing, say_json, styled, utc_time
from blogdata.errors import ConfigurationError
from blogdata.evidence.events import EventLog
from blogdata.lake.lake import Lake
from blogdata.orchestration import partner
from blogdata.patterns.data_value.outbox import Outbox
from blogdata.patterns.data_value.outbox_account import Open, OutboxLine
from blogdata.publish.writes import Feed
from blogdata.services.config import Settings
from blogdata.simulator.partner import Partner, PartnerFaults
from quality.contracts.serving import PARTNER_FEED

PORT = 3071
_STATES = ("delivered", "waiting", "sending")


def feed(
    send: Annotated[bool, typer.Option("--send", help="Send now what is due; a run does it, too")] = False,
    taken: Annotated[
        str | None, typer.Option(metavar="REQUEST", help="Settle a request without an answer: the partner has it")
    ] = None,
    not_taken: Annotated[
        str | None, typer.Option(metavar="REQUEST", help="Settle one: the partner does not have it; it is sent again")
    ] = None,
    simulate: Annotated[
        bool, typer.Option("--simulate", help="Be a partner to try with, in the foreground; Ctrl-C ends it")
    ] = False,
    port: Annotated[int, typer.Option(help="Port of the simulated partner")] = PORT,
    faults: Annotated[float, typer.Option(help="Share of its requests that fail, in each way", min=0, max=1)] = 0.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document")] = False,
) -> None:
    """Show what was sent to the partner and what waits; exit code 1 when a request waits for a person."""
    settings = existing()
    if simulate:
        _simulate(settings, port, faults)
        return
    if taken is not None and not_taken is not None:
        raise ConfigurationError(
            what="both --taken and --not-taken are given", where="the command line", next_step="settle one at a time"
        )
    box = partner.outbox(settings)
    if taken is not None or not_taken is not None:
        with box.alone():
            count = box.resolve(taken or not_taken or "", taken=taken is not None)
        console.print(f"{count} records {'count as delivered' if taken else 'wait again'}")
    if send:
        with box.alone():
            _require_taken(settings, box)
            assert isinstance(PARTNER_FEED.write, Feed)
            count = partner.send(settings, box, PARTNER_FEED.write)
        console.print(f"the partner took {count:,} records")
    held = box.held()
    if as_json:
        say_json({"partitions": [*map(_line, box.lines())], "open": [_open(one, one in held) for one in box.open()]})
    else:
        _show(settings, box, held)
    if held:
        raise typer.Exit(1)


def _require_taken(settings: Settings, box: Outbox) -> None:
    """Refuse to send while something published is not taken: it may come before what waits, or withdraw it."""
    dataset = PARTNER_FEED.reads[0].dataset
    if missing := partner.untaken(box, EventLog(Lake(root=str(settings.lake))), dataset):
        raise ConfigurationError(
            what=f"{len(missing)} partitions of {dataset} are published and not taken yet",
            where=f"the outbox, {missing[0]} first",
            next_step="take and send them: blogdata run",
        )


def _simulate(settings: Settings, port: int, faults: float) -> None:
    file = settings.home / "partner" / "received.jsonl"
    try:
        server = Partner(port=port, file=file, faults=PartnerFaults.every(faults), seed=time.time_ns())
    except OSError as error:
        raise ConfigurationError(
            what=f"port {port} cannot be used: {error.strerror}", where="--port", next_step="choose another one"
        ) from error
    console.print(f'a partner at {server.url}; what it takes: {file}\n[partner] url = "{server.url}"')
    with server:
        server.serve_forever()


def _show(settings: Settings, box: Outbox, held: list[Open]) -> None:
    if not partner.is_configured(settings):
        console.print('no partner is configured: write [partner] url = "https://…" into blogdata.toml')
    lines = box.lines()
    if not lines:
        console.print("nothing has been taken for the partner")
        return
    counts = sum((Counter(line.states) for line in lines), Counter[str]())
    table = TextGrid()
    for title in ("hours", "rows", "private", *_STATES, ""):
        table.add_column(title, justify="right")
    table.add_row(
        str(len(lines)),
        f"{sum(line.rows_in for line in lines):,}",
        f"{sum(line.private for line in lines):,}",
        *(f"{counts[state]:,}" for state in _STATES),
        styled("DOES NOT ADD UP", "red") if any(line.missing for line in lines) else styled("adds up", "green"),
    )
    console.print(table)
    for name, text in (
        ("corrected", "were corrected after they were sent; the partner has them as they were"),
        ("withdrawn", "were withdrawn, or made private, after they were sent; tell the partner to remove them"),
    ):
        if count := sum(getattr(line, name) for line in lines):
            console.print(f"{count:,} events {text}")
    for one in held:
        console.print(
            f"request {one.request.id} of {utc_time(one.opened)}, {len(one.request.records)} records, waits for a "
            f"person: {_reason(one)}; ask the partner, and settle it with --taken or --not-taken",
        )


def _reason(one: Open) -> str:
    if one.withdrawn:
        return f"{one.withdrawn} of its events may not be sent any more"
    return "it was not answered, and is too old to be repeated"


def _line(line: OutboxLine) -> dict[str, Any]:
    return {
        "partition": line.partition,
        "rows_in": line.rows_in,
        "private": line.private,
        **{state: line.states.get(state, 0) for state in _STATES},
        "corrected": line.corrected,
        "withdrawn": line.withdrawn,
        "balanced": not line.missing,
    }


def _open(one: Open, held: bool) -> dict[str, Any]:
    return {
        "request": one.request.id,
        "opened": utc_time(one.opened),
        "records": len(one.request.records),
        "waits_for_a_person": _reason(one) if held else None,
    }
