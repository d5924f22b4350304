"""Remedies: an error names the action that mends it, which reads as the command to type."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

ACCEPT = "blogdata/accept"
"""Tag of a run: comma-separated guards that a person has lifted for it."""
_SAFE_IN_DOUBLE_QUOTES = re.compile(r'[^"$`\\!]*')


class Action(str):
    """A command as it is typed; a word in braces is a value of the action, and is left out where that is not set."""

    def __new__(cls, words: str, **values: Any) -> Action:
        command = " ".join(map(_quoted, ["blogdata", *_typed(words, values)]))
        guards = values.get("accept")
        return super().__new__(cls, command + (f" (in the UI: the run's tag {ACCEPT}={guards})" if guards else ""))


def _typed(words: str, values: Mapping[str, Any]) -> Iterator[str]:
    for word in words.split():
        option, equals, name = word.rpartition("=")
        value = values.get(name[1:-1]) if name.startswith("{") else name
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


Run = partial(Action, "run --from={start} --to={end} --select={datasets} --accept={accept}")
"""Run what is stale, or run again a span of hours or days (the end not included) or some datasets."""
Replay = partial(Action, "job replay dataset={dataset} partitions={partitions}")
ShowLedger = partial(Action, "ledger {dataset}")
WriteViews = partial(Action, "job share")
ShowRights = partial(Action, "rights --roles")
GoOnForgetting = partial(Action, "forget")
Rotate = partial(Action, "job rotate key={key}")
ShowMigrations = partial(Action, "schema migrations")
Query = partial(Action, "sql {sql} --as-of={as_of}")
RunStream = partial(Action, "stream {name} --new-checkpoint={new_checkpoint}")
Land = partial(Action, "land --help")
StartService = partial(Action, "up {name}")
ShowService = partial(Action, "status {name}")
Diagnose = partial(Action, "doctor")
OpenUi = partial(Action, "ui --open")


class Remedy(str):
    """A text with actions in it, such as `Remedy("materialize it first, or run: ", Run())`."""

    def __new__(cls, *parts: str) -> Remedy:
        return super().__new__(cls, "".join(parts))
