"""Renders the actions of errors as the commands to type."""

from __future__ import annotations

import re
import shlex

from errors import remedies
from errors.remedies import (
    Action,
    Correct,
    Diagnose,
    Land,
    Query,
    RemoveColumn,
    Repair,
    Replay,
    RetryEvent,
    Run,
    RunStream,
    ShowEvents,
    ShowFeed,
    ShowLedger,
    ShowMigrations,
    ShowService,
    ShowVersions,
    StartService,
    TryAlerts,
)
from orchestration.names import ACCEPT

_SAFE_IN_DOUBLE_QUOTES = re.compile(r'[^"$`\\!]*')


def register() -> None:
    """Have the errors of this process show commands."""
    remedies.say_with(said)


def said(action: Action) -> str:
    """Return the command to type, and what to do in the UI where that differs."""
    typed = command(action)
    if isinstance(action, Run) and action.accept:
        return f"{typed} (in the UI: the run's tag {ACCEPT}={action.accept})"
    return typed


def command(action: Action) -> str:
    """Return the command line that takes an action."""
    return " ".join(map(_quoted, ["blogdata", *_words(action)]))


def _words(action: Action) -> list[str]:
    match action:
        case Run():
            return [
                "run",
                *_option("--from", action.start),
                *_option("--to", action.end),
                *_option("--select", ",".join(action.datasets)),
                *_option("--accept", action.accept),
            ]
        case Replay():
            return ["plan", "--replay", action.dataset, "--partitions", action.partitions]
        case Repair():
            return ["repair"]
        case ShowLedger():
            return ["ledger", *_given(action.dataset)]
        case ShowVersions():
            return ["versions", action.dataset]
        case ShowMigrations():
            return ["schema", "migrations"]
        case RemoveColumn():
            return ["schema", "remove", action.dataset, action.column]
        case Query():
            return ["sql", action.sql, *_option("--as-of", action.as_of)]
        case RunStream():
            return [
                "stream",
                *_given(action.name),
                *(["--once"] if action.once else []),
                *(["--new-checkpoint"] if action.new_checkpoint else []),
                *_option("--accept", action.accept),
            ]
        case Land():
            return ["land", "--help"]
        case Correct():
            return ["land", "replay", action.file]
        case StartService():
            return ["up", action.name]
        case ShowService():
            return ["status", action.name]
        case Diagnose():
            return ["doctor"]
        case TryAlerts():
            return ["alerts", "--test"]
        case ShowFeed():
            return ["feed"]
        case ShowEvents():
            return ["events"]
        case RetryEvent():
            return ["events", "--retry", action.name]


def _given(value: str | None) -> list[str]:
    return [value] if value else []


def _option(name: str, value: str | None) -> list[str]:
    return [name, value] if value else []


def _quoted(word: str) -> str:
    """Quote a word for a shell; a query, which holds single quotes, reads better in double ones."""
    quoted = shlex.quote(word)
    return f'"{word}"' if quoted != word and _SAFE_IN_DOUBLE_QUOTES.fullmatch(word) else quoted
