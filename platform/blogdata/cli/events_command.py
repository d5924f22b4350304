"""`blogdata events`: the inbox of events from outside, a retry of one, and the receiver in the foreground."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Annotated, Any

import typer

from blogdata.cli.output import TextGrid, console, existing, say_json, utc_time
from blogdata.cli.remedies import command
from blogdata.errors.remedies import RetryEvent
from blogdata.orchestration import external_events
from blogdata.patterns.ingestion.event_inbox import InboxEntry, Refusal
from blogdata.patterns.ingestion.external_trigger import context
from blogdata.patterns.ingestion.trigger_event import Malformed
from blogdata.services import event_receiver, event_service, event_tokens
from blogdata.services.config import Settings

_SHOWN = 50


def events(
    retry: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Have one start a run: failed, started before, or refused (refused-N)"),
    ] = None,
    serve: Annotated[
        bool, typer.Option("--serve", help="Receive events in the foreground; blogdata up events does it in its own")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document")] = False,
) -> None:
    """List the events from outside: what waits, what started which run, what was refused."""
    settings = existing()
    if serve:
        _serve(settings)
    elif retry is not None:
        _retry(settings, retry, as_json=as_json)
    else:
        inbox = external_events.inbox(settings)
        entries, refusals = inbox.newest(_SHOWN), inbox.refusals(_SHOWN)
        if as_json:
            say_json({"events": [*map(_event, entries)], "refused": [*map(_refusal, refusals)]})
        else:
            _show(settings, entries, refusals)


def _serve(settings: Settings) -> None:
    from quality.contracts import CONTRACTS

    # A token that cannot be used ends this now, and not the first event.
    event_tokens.read(settings)
    entrance = external_events.trigger(settings, CONTRACTS)
    log = event_service.log_file(settings)
    console.print(f"events are received at {settings.events.host}:{settings.events.port}; log: {log}")
    event_receiver.serve(settings, external_events.answer(entrance), log=log)


def _retry(settings: Settings, name: str, *, as_json: bool) -> None:
    from quality.contracts import CONTRACTS

    entry = external_events.trigger(settings, CONTRACTS).retry(name, datetime.now(timezone.utc))
    if as_json:
        say_json(_event(entry))
    else:
        console.print(f"{entry.event.key} waits; Dagster's daemon starts its run")


def _show(settings: Settings, entries: Sequence[InboxEntry], refusals: Sequence[Refusal]) -> None:
    if not settings.events.senders:
        console.print("no sender is configured: write [[events.senders]] into blogdata.toml")
    if not entries and not refusals:
        console.print("no event has arrived")
        return
    table = TextGrid()
    for title in ("received", "state", "event", "requests", "run, or why there is none"):
        table.add_column(title, no_wrap=title != "run, or why there is none")
    for entry in entries:
        table.add_row(utc_time(entry.received), entry.state, entry.event.key, entry.event.request, _outcome(entry))
    for refusal in refusals:
        why = f"{refusal.kind}: {refusal.what}"
        table.add_row(utc_time(refusal.at), "refused", refusal.name, "", f"{why} (from {refusal.origin})")
    console.print(table)
    failed = [entry.event.key for entry in entries if entry.state == "failed"]
    if kept := [*failed, *(refusal.name for refusal in refusals if _can_be_retried(refusal))]:
        console.print(f"have one start a run:  {command(RetryEvent(name=kept[-1]))}")


def _outcome(entry: InboxEntry) -> str:
    if entry.state != "waiting" or not entry.tries:
        return entry.run_id or entry.reason
    return f"requested {entry.tries} times" + (f"; {entry.reason}" if entry.reason else "")


def _event(entry: InboxEntry) -> dict[str, Any]:
    return {
        "name": entry.event.key,
        "state": entry.state,
        "datasets": list(entry.event.datasets),
        "span": entry.event.span,
        "run_id": entry.run_id,
        "tries": entry.tries,
        "reason": entry.reason,
        **context(entry),
    }


def _refusal(refusal: Refusal) -> dict[str, Any]:
    return {
        "name": refusal.name,
        "at": utc_time(refusal.at),
        "channel": refusal.channel,
        "origin": refusal.origin,
        "sender": refusal.sender,
        "kind": refusal.kind,
        "what": refusal.what,
        "can_be_retried": _can_be_retried(refusal),
    }


def _can_be_retried(refusal: Refusal) -> bool:
    return refusal.body is not None and refusal.kind != Malformed.kind
