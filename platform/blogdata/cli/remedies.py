"""Renders the actions of errors as the commands to type."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from blogdata.errors import remedies
from blogdata.errors.remedies import Action, Run
from blogdata.orchestration.names import ACCEPT

_COMMANDS = {
    "Run": "run --from={start} --to={end} --select={datasets} --accept={accept}",
    "Replay": "plan --replay={dataset} --partitions={partitions}",
    "ShowLedger": "ledger {dataset}",
    "WriteViews": "job share",
    "WithdrawShare": "job share dataset={dataset} withdraw=true",
    "ShowRights": "rights --roles",
    "GoOnForgetting": "forget",
    "Rotate": "job rotate key={key}",
    "ShowMigrations": "schema migrations",
    "RemoveColumn": "schema remove {dataset} {column}",
    "Query": "sql {sql} --as-of={as_of}",
    "RunStream": "stream {name} --once={once} --new-checkpoint={new_checkpoint}",
    "Land": "land --help",
    "StartService": "up {name}",
    "ShowService": "status {name}",
    "Diagnose": "doctor",
}
"""The command of each action; a word in braces is a value of the action, and is left out where that is not set."""
_SAFE_IN_DOUBLE_QUOTES = re.compile(r'[^"$`\\!]*')


def register() -> None:
    remedies.say_with(said)


def said(action: Action) -> str:
    """Return the command to type, and what to do in the UI where that differs."""
    typed = command(action)
    if isinstance(action, Run) and action.accept:
        return f"{typed} (in the UI: the run's tag {ACCEPT}={action.accept})"
    return typed


def command(action: Action) -> str:
    return " ".join(map(_quoted, ["blogdata", *_words(action)]))


def _words(action: Action) -> Iterator[str]:
    for word in _COMMANDS[type(action).__name__].split():
        option, equals, name = word.rpartition("=")
        value = getattr(action, name[1:-1]) if name.startswith("{") else name
        if option and not option.startswith("--"):
            # Configuration of a job.
            yield f"{option}{equals}{value}"
            continue
        if value and option:
            yield option
        if value and value is not True:
            yield ",".join(value) if isinstance(value, tuple) else value


def _quoted(word: str) -> str:
    """Quote a word for a shell; a query, which holds single quotes, reads better in double ones."""
    quoted = shlex.quote(word)
    return f'"{word}"' if quoted != word and _SAFE_IN_DOUBLE_QUOTES.fullmatch(word) else quoted
