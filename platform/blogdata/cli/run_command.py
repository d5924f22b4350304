"""`blogdata run`: materializes what has landed, bronze to gold, through Dagster."""

from __future__ import annotations

from typing import Annotated

import typer

from blogdata.cli.output import (
    NOTHING_LANDED,
    Json,
    Outcome,
    console,
    errors,
    for_the_rest,
    is_new,
    moment,
    say_error,
    say_json,
    say_warnings,
)
from blogdata.cli.report_command import made_after_a_run
from blogdata.errors import ConfigurationError
from blogdata.operate.config import Settings, load

EVERYTHING = "everything that has landed completely is published, and everything downstream of it"
"""Reason shown when a run of the whole lineage has nothing to do."""
_IN_THE_SPAN = "no partition of these datasets lies in that span"
_NOTHING_LANDED = "nothing has landed for these datasets"
_UP_TO_DATE = "these datasets have everything that has landed completely"


def run(
    from_: Annotated[
        str | None, typer.Option("--from", help="First hour or day, 2026-01-05 or 2026-01-05T03 (UTC), to run again")
    ] = None,
    to: Annotated[str | None, typer.Option("--to", help="End of the span, not included")] = None,
    select: Annotated[
        str | None,
        typer.Option(help="Run these datasets again, separated by commas, like silver.visits,gold.page_stats"),
    ] = None,
    for_: Annotated[
        str | None,
        typer.Option(
            "--for",
            metavar="DATASETS",
            help="Run only what is new or changed of these datasets, separated by commas, and of all that they are "
            "computed from",
        ),
    ] = None,
    accept: Annotated[
        str | None,
        typer.Option(
            help="Lift a guard for this run: size (a full load has far fewer or more rows than the last, or published "
            "lines have no landed file any more), frozen (a week of a frozen year is replaced), dead_letters (go on "
            "without lines though too many are rejected), audit:DATASET:NAME (publish though that audit failed: it is "
            "a false alarm)"
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Materialize bronze to gold for what has landed.

    Without options only what is new or changed runs; with --for, as much of it as the named datasets need. --from and
    --to run a span again, one of them all on that side; --select runs the named datasets again, in a span or whole.
    """
    from blogdata.cli.pipeline import Pipeline
    from blogdata.planning.plan import Window

    window = None
    if from_ or to:
        window = Window(start=moment(from_, "--from") if from_ else None, end=moment(to, "--to") if to else None)
        if window.start and window.end and window.end <= window.start:
            raise ConfigurationError(
                what=f"no hour is between {window.start:%Y-%m-%dT%H} and {window.end:%Y-%m-%dT%H}",
                where="--to",
                next_step="name the end of the last hour",
            )
    chosen, needed = _names(select), _names(for_)
    settings = load()
    pipeline = Pipeline(settings, quiet=as_json, accept=accept)
    outcome = pipeline.run(window=window, select=chosen, for_=needed)
    if not is_new(settings):
        outcome.warnings += made_after_a_run(settings, outcome)
    if as_json:
        say_json(outcome.as_json())
    else:
        reasons = {NOTHING_LANDED: is_new(settings), _IN_THE_SPAN: window, _NOTHING_LANDED: chosen}
        say(
            outcome,
            nothing=next((why for why, holds in reasons.items() if holds), _UP_TO_DATE if needed else EVERYTHING),
        )
    if not (_told(settings) and outcome.ok):
        raise typer.Exit(1)


def _told(settings: Settings) -> bool:
    if not settings.alerts:
        return True
    from blogdata.watch.alerting import AlertsNotSent, tell

    try:
        sent = tell(settings)
    except AlertsNotSent as error:
        say_error(error)
        return False
    if sent:
        errors.print(f"alert messages sent: {sent}")
    return True


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",")) if text else ()


def say(outcome: Outcome, *, nothing: str) -> None:
    if outcome.ok and not outcome.runs:
        console.print(f"nothing to do: {nothing}")
        say_warnings(outcome.warnings)
        return
    if outcome.runs:
        console.print(
            f"{'done' if outcome.ok else 'FAILED'} in {outcome.seconds:.0f} s: "
            f"{outcome.runs} runs, {outcome.rows:,} rows published"
        )
    say_warnings(outcome.warnings)
    for problem in outcome.problems:
        console.print(problem, style="red")
    if outcome.ok:
        console.print(
            "look at it:  blogdata report   ·   blogdata ledger   ·   "
            "blogdata sql 'SELECT * FROM gold.page_stats'   ·   blogdata ui"
        )
    else:
        console.print(f"what was published stays; {for_the_rest()}")
