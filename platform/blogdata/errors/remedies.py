"""Remedies as data: an error names the action that mends it, which reads as the command to type."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

ACCEPT = "blogdata/accept"
"""Tag of a run: comma-separated guards that a person has lifted for it."""
_SAFE_IN_DOUBLE_QUOTES = re.compile(r'[^"$`\\!]*')


@dataclass(frozen=True, kw_only=True)
class Action:
    words: ClassVar[str]
    """The command; a word in braces is a value of the action, and is left out where that is not set."""

    def __init_subclass__(cls, *, words: str) -> None:
        cls.words = words

    def __str__(self) -> str:
        return self.command

    @property
    def command(self) -> str:
        return " ".join(map(_quoted, ["blogdata", *self._typed()]))

    def _typed(self) -> Iterator[str]:
        for word in self.words.split():
            option, equals, name = word.rpartition("=")
            value = getattr(self, name[1:-1]) if name.startswith("{") else name
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


@dataclass(frozen=True, kw_only=True)
class Run(Action, words="run --from={start} --to={end} --select={datasets} --accept={accept}"):
    """Run what is stale, or run again a span of hours or days (the end not included) or some datasets."""

    start: str | None = None
    end: str | None = None
    datasets: tuple[str, ...] = ()
    accept: str | None = None

    def __str__(self) -> str:
        return self.command + (f" (in the UI: the run's tag {ACCEPT}={self.accept})" if self.accept else "")


@dataclass(frozen=True, kw_only=True)
class Replay(Action, words="job replay dataset={dataset} partitions={partitions}"):
    """Run partitions of a dataset again, and everything that has read them."""

    dataset: str
    partitions: str


@dataclass(frozen=True, kw_only=True)
class ShowLedger(Action, words="ledger {dataset}"):
    """Compare rows in and rows out; of one dataset by partition, or of all."""

    dataset: str | None = None


class WriteViews(Action, words="job share"):
    """Write the views for consumers into the lake."""


class ShowRights(Action, words="rights --roles"):
    """List what each role sees of the datasets."""


class GoOnForgetting(Action, words="forget"):
    """End an erasure of persons that was interrupted."""


@dataclass(frozen=True, kw_only=True)
class Rotate(Action, words="job rotate key={key}"):
    key: str


class ShowMigrations(Action, words="schema migrations"):
    """List the columns that are being retired, and who still reads them."""


@dataclass(frozen=True, kw_only=True)
class Query(Action, words="sql {sql} --as-of={as_of}"):
    """Query the tables, as of a time or as they are."""

    sql: str
    as_of: str | None = None


@dataclass(frozen=True, kw_only=True)
class RunStream(Action, words="stream {name} --new-checkpoint={new_checkpoint}"):
    """Run a stream; the only one there is, if it is not named."""

    name: str | None = None
    new_checkpoint: bool = False


class Land(Action, words="land --help"):
    """Put data into the landing zone."""


@dataclass(frozen=True, kw_only=True)
class StartService(Action, words="up {name}"):
    name: str


@dataclass(frozen=True, kw_only=True)
class ShowService(Action, words="status {name}"):
    """See whether a service runs, and until when its certificates are accepted."""

    name: str


class Diagnose(Action, words="doctor"):
    """Check everything the deployment needs."""


class Remedy(str):
    """A text with actions in it, such as `Remedy("materialize it first, or run: ", Run())`."""

    def __new__(cls, *parts: str | Action) -> Remedy:
        return super().__new__(cls, "".join(map(str, parts)))
