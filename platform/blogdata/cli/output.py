"""What commands print: plain lines, tables, a live display on a terminal, or JSON.

All of it goes through here, because values that visitors and producers choose are part of nearly all of it.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from blogdata.errors import ConfigurationError, PlatformError, shown

if TYPE_CHECKING:
    from blogdata.operate.config import Settings
    from blogdata.table.lake import Lake

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document")]
FIRST_STEPS = (
    "blogdata land simulate --days 1 --visits-per-day 10000 --seed 7 && blogdata run; "
    "or with an access log of your own: blogdata land logs FILE && blogdata run"
)
"""Commands to start with when nothing has landed."""
NOTHING_PUBLISHED = f"nothing is published yet; try: {FIRST_STEPS}"
NOTHING_LANDED = f"nothing has landed yet; try: {FIRST_STEPS}"
PIPED = 240
"""Width in columns of output that is not a terminal."""


_LEAST, _ANY = 8, 1 << 30
"""Least width in columns of a cell that has several lines, and that of a terminal on which everything has place."""
DATASET = 30
"""Width in columns of the names of datasets, where figures stand behind them."""


class Terminal(Console):
    """Prints every text as it is: without markup, and with control characters as escapes."""

    def __init__(self, *, stderr: bool = False, width: int | None = None) -> None:
        super().__init__(stderr=stderr, width=width, highlight=False, markup=False, emoji=False, soft_wrap=True)

    def render_str(self, text: str, **options: Any) -> Text:
        """Return a text as it is printed; Rich calls this for each text that it prints, within a table, too."""
        return super().render_str(shown.block(text), **options)


class TextGrid(Table):
    """A table without frame; a cell has one line, or is a sequence of lines.

    On a narrow terminal columns marked `no_wrap` keep their width, so that a cell can be copied; others wrap, uncut.
    """

    def __init__(self, *titles: str) -> None:
        super().__init__(*titles, box=None, pad_edge=False)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Set how columns share the width: Rich would cut off any of them."""
        free = options.update_width(_ANY)
        widths = [
            max(console.measure(cell, options=free).maximum for cell in (column.header, *column.cells))
            for column in self.columns
        ]
        for column, width in zip(self.columns, widths, strict=True):
            column.overflow = "fold"
            if column.no_wrap:
                column.min_width = width
        least = sum(column.min_width or min(width, _LEAST) for column, width in zip(self.columns, widths, strict=True))
        if sum(widths) + 2 * (len(widths) - 1) > options.max_width:
            self.padding = (0, 1, 0, 0)
        # Rich would leave columns out for which there is no place; a terminal breaks longer lines itself.
        return super().__rich_console__(console, options.update_width(max(options.max_width, least + len(widths) - 1)))

    def add_row(self, *cells: Any, style: Any = None, end_section: bool = False) -> None:
        super().add_row(*map(_cell, cells), style=style, end_section=end_section)


def _cell(given: str | Sequence[str] | Text) -> Text:
    if isinstance(given, Text):
        return given
    return Text("\n".join(map(shown.line, [given] if isinstance(given, str) else given)))


# A pipe has no width; a terminal's default width would cut off the names in a table.
console = Terminal(width=None if sys.stdout.isatty() else PIPED)
errors = Terminal(stderr=True)


class Screen:
    """Lines, and on a terminal what is done now; nothing if it is not shown."""

    def __init__(self, *, shown: bool) -> None:
        self._shown = shown
        self._now = console.status("starting")

    @contextmanager
    def opened(self) -> Iterator[Screen]:
        with self._now if self._shown else nullcontext():
            yield self

    def print(self, text: str, style: str | None = None) -> None:
        if self._shown:
            console.print(text, style=style)

    def status(self, text: str) -> None:
        # As a text, since Rich reads markup in a string.
        self._now.update(Text(shown.line(text)))


@dataclass(kw_only=True)
class Outcome:
    """What a command ran and published, with its problems and warnings."""

    runs: int = 0
    rows: int = 0
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    steps: list[dict[str, Any]] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.problems

    def as_json(self) -> dict[str, Any]:
        return {"ok": self.ok, **asdict(self), "seconds": round(self.seconds, 1)}


def say_error(error: PlatformError) -> None:
    errors.print(f"error: {error.what}", style="red")
    errors.print(f"where: {error.where}")
    errors.print(f"next:  {error.next_step}")


def not_published(lake: Lake, dataset: str) -> PlatformError:
    """Return the error of a dataset that does not exist yet, as one that an upgrade has brought."""
    from quality.contracts import STREAMED

    if is_new(existing()):
        next_step = NOTHING_PUBLISHED
    elif (fault := nothing_landed(lake, dataset)) is not None:
        return fault
    elif dataset in STREAMED:
        next_step = f"a stream publishes it: blogdata stream {dataset} --once"
    else:
        next_step = f"compute it: blogdata run --for {dataset}"
    return ConfigurationError(what=f"there is no {dataset} yet", where=lake.root, next_step=next_step)


def nothing_landed(lake: Lake, dataset: str) -> PlatformError | None:
    """Return the error that nothing can be computed of a dataset, because a source of it has never landed; or None."""
    from blogdata.ledger.events import EventLog
    from blogdata.planning.snapshot import Snapshot, awaited
    from blogdata.runs.zone import zone_of
    from quality.contracts import GRAPH

    if dataset not in GRAPH.contracts:
        return None
    return awaited(GRAPH, Snapshot(zone_of(existing()), EventLog(lake)), dataset)


def existing() -> Settings:
    """Read the settings for a command that only reads a deployment, and begins none."""
    from blogdata.operate import config

    home, named = config.home(os.environ), os.environ.get("BLOGDATA_HOME")
    if not home.is_dir():
        raise ConfigurationError(
            what="there is no deployment here",
            where=f"BLOGDATA_HOME={home}" if named else f"{home}, as BLOGDATA_HOME is not set",
            next_step=f"go to the folder that has it, or name its home by BLOGDATA_HOME; to begin one: {FIRST_STEPS}",
        )
    return config.load()


def is_new(settings: Settings) -> bool:
    return not any(folder.is_dir() and any(folder.iterdir()) for folder in (settings.landing, settings.lake))


def for_the_rest() -> str:
    return f"for the rest run again: {shlex.join(['blogdata', *sys.argv[1:]])}"


def moment(text: str, option: str) -> datetime:
    """Parse a day, an hour or a time of an option; without an offset it is UTC."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise ConfigurationError(
            what=f"'{text}' is no day, hour or time",
            where=option,
            next_step="write it like 2026-01-05, 2026-01-05T03 or 2026-01-05T03:00:00 (UTC)",
        ) from error
    return time.replace(tzinfo=timezone.utc) if time.tzinfo is None else time.astimezone(timezone.utc)


def say_warnings(warnings: Iterable[str]) -> None:
    for warning in warnings:
        console.print(f"warning: {warning}", style="yellow")


def say_json(value: Any) -> None:
    say_verbatim(shown.json_text(value) + "\n")


def say_verbatim(text: str) -> None:
    """Print a text in a format that escapes values itself."""
    sys.stdout.write(text)
