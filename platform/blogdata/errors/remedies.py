"""Remedies as data: an error names the action, and the process that shows the error says how to take it.

The library knows no command line. A process with one calls :func:`say_with` when it starts, and its errors then show
the commands to type; in any other process an action reads as plain words, like `run (accept: size)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True, kw_only=True)
class Action:
    words: ClassVar[str]

    def __init_subclass__(cls, *, words: str) -> None:
        cls.words = words

    def __str__(self) -> str:
        given = {name.replace("_", " "): value for name, value in vars(self).items() if value}
        texts = [f"{name}: {', '.join(value) if isinstance(value, tuple) else value}" for name, value in given.items()]
        # What is only switched on needs no value.
        texts = [text.removesuffix(": True") for text in texts]
        return self.words + (f" ({'; '.join(texts)})" if texts else "")


@dataclass(frozen=True, kw_only=True)
class Run(Action, words="run"):
    """Run what is stale, or run again a span of hours or days (the end not included) or some datasets."""

    start: str | None = None
    end: str | None = None
    datasets: tuple[str, ...] = ()
    accept: str | None = None


@dataclass(frozen=True, kw_only=True)
class Replay(Action, words="replay"):
    """Run partitions of a dataset again, and everything that has read them."""

    dataset: str
    partitions: str


@dataclass(frozen=True, kw_only=True)
class ShowLedger(Action, words="see the ledger"):
    """Compare rows in and rows out; of one dataset by partition, or of all."""

    dataset: str | None = None


class WriteViews(Action, words="write the views"):
    """Write the views for consumers into the lake."""


@dataclass(frozen=True, kw_only=True)
class WithdrawShare(Action, words="withdraw the share"):
    dataset: str


class ShowRights(Action, words="see what the roles see"):
    """List what each role sees of the datasets."""


class GoOnForgetting(Action, words="go on with the erasure"):
    """End an erasure of persons that was interrupted."""


@dataclass(frozen=True, kw_only=True)
class Rotate(Action, words="rotate the key"):
    key: str


class ShowMigrations(Action, words="list the migrations"):
    """List the columns that are being retired, and who still reads them."""


@dataclass(frozen=True, kw_only=True)
class RemoveColumn(Action, words="remove the column"):
    dataset: str
    column: str


@dataclass(frozen=True, kw_only=True)
class Query(Action, words="query"):
    """Query the tables, as of a time or as they are."""

    sql: str
    as_of: str | None = None


@dataclass(frozen=True, kw_only=True)
class RunStream(Action, words="run the stream"):
    """Run a stream; the only one there is, if it is not named."""

    name: str | None = None
    once: bool = False
    new_checkpoint: bool = False


class Land(Action, words="put data into the landing zone"):
    """Put data into the landing zone."""


@dataclass(frozen=True, kw_only=True)
class StartService(Action, words="start the service"):
    name: str


@dataclass(frozen=True, kw_only=True)
class ShowService(Action, words="see the state of the service"):
    """See whether a service runs, and until when its certificates are accepted."""

    name: str


class Diagnose(Action, words="check the deployment"):
    """Check everything the deployment needs."""


ACTIONS: dict[str, type[Action]] = {kind.__name__: kind for kind in Action.__subclasses__()}
"""Every action, by its name."""
_say: Callable[[Action], str] = str


def say_with(say: Callable[[Action], str]) -> None:
    global _say
    _say = say


@dataclass(frozen=True, init=False)
class Remedy:
    """A text with actions in it, such as `Remedy("materialize it first, or run: ", Run())`.

    Args:
        parts: Texts and actions, in order; the parts of another remedy take its place.
    """

    parts: tuple[str | Action, ...]

    def __init__(self, *parts: str | Action | Remedy) -> None:
        flat = (own for part in parts for own in (part.parts if isinstance(part, Remedy) else (part,)))
        object.__setattr__(self, "parts", tuple(flat))

    def __str__(self) -> str:
        return "".join(part if isinstance(part, str) else _say(part) for part in self.parts)

    def as_json(self) -> list[Any]:
        return [part if isinstance(part, str) else [type(part).__name__, vars(part)] for part in self.parts]

    @classmethod
    def of_json(cls, parts: Iterable[Any]) -> Remedy:
        return cls(*[part if isinstance(part, str) else _action(*part) for part in parts])


def _action(kind: str, values: dict[str, Any]) -> Action:
    # JSON has lists only.
    given = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
    return ACTIONS[kind](**given)
