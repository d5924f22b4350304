"""What commands print: plain lines, a live display on a terminal, or JSON."""

from __future__ import annotations

import json
import shlex
import sys
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

from errors import ConfigurationError, PlatformError

if TYPE_CHECKING:
    from lake.lake import Lake
    from services.config import Settings

FIRST_STEPS = (
    "blogdata land simulate --days 1 --visits-per-day 10000 --seed 7 && blogdata run; "
    "or with an access log of your own: blogdata land logs FILE && blogdata run"
)
"""Commands to start with when nothing has landed."""
NOTHING_PUBLISHED = f"nothing is published yet; try: {FIRST_STEPS}"
NOTHING_LANDED = f"nothing has landed yet; try: {FIRST_STEPS}"
PIPED = 240
"""Width in columns of output that is not a terminal."""
# A pipe has no width; a terminal's default width would cut off the names in a table.
console = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else PIPED)
errors = Console(stderr=True, highlight=False, soft_wrap=True)


def say_error(error: PlatformError) -> None:
    """Print what happened, where, and what to do next."""
    errors.print(f"error: {error.what}", style="red", markup=False)
    errors.print(f"where: {error.where}", markup=False)
    errors.print(f"next:  {error.next_step}", markup=False)


def agreed(question: str, *, otherwise: str) -> bool:
    """Ask the person at the terminal; without a terminal, print `otherwise` and return False."""
    if sys.stdin.isatty():
        return typer.confirm(question)
    console.print(otherwise)
    return False


def not_published(lake: Lake, dataset: str) -> ConfigurationError:
    """Return the error of a command that needs a dataset which does not exist yet, with the command that computes it.

    After an upgrade a deployment may lack the datasets that are new; only an empty one is shown the first steps.
    """
    from evidence.events import EVENTS
    from quality.contracts import STREAMED

    if lake.table(EVENTS) is None:
        next_step = NOTHING_PUBLISHED
    elif dataset in STREAMED:
        next_step = f"a stream publishes it: blogdata stream {dataset} --once"
    else:
        next_step = f"compute it: blogdata run --for {dataset}"
    return ConfigurationError(what=f"there is no {dataset} yet", where=lake.root, next_step=next_step)


def is_new(settings: Settings) -> bool:
    """Return whether nothing has landed in a deployment and nothing is published."""
    return not any(folder.is_dir() and any(folder.iterdir()) for folder in (settings.landing, settings.lake))


def for_the_rest() -> str:
    """Return the hint to rerun this command, as it was typed, for the remaining work."""
    return f"for the rest run again: {shlex.join(['blogdata', *sys.argv[1:]])}"


def say_json(value: Any) -> None:
    """Print a value as JSON on standard output."""
    print(json.dumps(value, indent=2, default=str, ensure_ascii=False))  # noqa: T201 - this is the result
