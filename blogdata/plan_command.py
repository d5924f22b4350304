"""`blogdata plan`: what would run and why, for what has changed or for partitions that a person wants to run again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from blogdata.output import agreed, console, say_json
from blogdata.run_command import EVERYTHING, say
from patterns.core import names
from patterns.core.errors import ConfigurationError
from patterns.core.events import EventLog
from patterns.core.lake import Lake
from quality.contracts import CONTRACTS
from services.config import Settings, load

if TYPE_CHECKING:
    from blogdata.progress import Outcome
    from orchestration.replay_planner import Past, PlannedRun


def plan(
    replay: Annotated[
        str | None, typer.Option(metavar="DATASET", help="Run partitions of it again, and all that has read them")
    ] = None,
    partitions: Annotated[
        str | None,
        typer.Option(help="Which ones: 2026-01-05T03, first..last, a whole day of hours, several by commas, or all"),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Run the plan without asking")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the plan (and with --yes its result) as JSON")] = False,
) -> None:
    """Show the smallest ordered set of runs, with reasons, rows and time; then ask whether to run it.

    Without --replay it is what `blogdata run` would do now, as far as can be told before it begins.
    """
    # Dagster is imported by the commands that run something; the others answer at once.
    from assets import plan as blog
    from orchestration.replay_planner import ASKED, Past
    from patterns.ingestion.log_splitter import pending

    names.known([replay] if replay else [], CONTRACTS, where="--replay")
    settings = load()
    events = EventLog(Lake(root=str(settings.lake)))
    if replay is None:
        if partitions is not None:
            raise ConfigurationError(
                what="partitions of which dataset?", where="--partitions", next_step="add: --replay DATASET"
            )
        planned = blog.outstanding(settings.landing, events)
    else:
        keys = blog.named(replay, partitions, settings.landing, events)
        planned = blog.replay({replay: dict.fromkeys(keys, ASKED)}, events)
    runs, past, outcome = planned.runs, Past(events), None
    unsplit = pending(settings.landing) if replay is None else []
    if as_json:
        told: dict[str, Any] = {"runs": [_as_json(run, past) for run in runs]}
        if unsplit:
            told["unsplit"] = [str(log) for log in unsplit]
        if planned.refused:
            told["refused"] = [str(error) for error in planned.refused]
        outcome = _run(settings, runs, quiet=True) if runs and yes else None
        say_json(told if outcome is None else {**told, "result": outcome.as_json()})
    elif runs or not planned.refused:
        _show(runs, past, unsplit)
        wanted = runs and (yes or agreed("run it?", otherwise="nothing was run; to run it: --yes"))
        outcome = _run(settings, runs, quiet=False) if wanted else None
        if outcome is not None:
            say(outcome)
    if planned.refused:
        raise planned.refused[0]
    if outcome is not None and not outcome.ok:
        raise typer.Exit(1)


def _run(settings: Settings, runs: Sequence[PlannedRun], *, quiet: bool) -> Outcome:
    from blogdata.pipeline import Pipeline

    return Pipeline(settings, quiet=quiet, command="blogdata plan").replay(runs)


def _show(runs: Sequence[PlannedRun], past: Past, unsplit: Sequence[Path]) -> None:
    if unsplit:
        console.print(
            f"{len(unsplit)} access log(s) are not split into hours yet: `blogdata run` does that first, and then "
            "what comes of it"
        )
        if not runs:
            return
    if not runs:
        console.print(f"nothing to do: {EVERYTHING}")
        return
    table = Table(box=None, pad_edge=False)
    for title in ("", "datasets", "partitions", "why"):
        table.add_column(title)
    for title in ("rows", "seconds"):
        table.add_column(title, justify="right")
    for number, run in enumerate(runs, start=1):
        estimate = past.estimate(run)
        rows = "?" if estimate.rows is None else f"~{estimate.rows:,}"
        seconds = "?" if estimate.seconds is None else f"~{estimate.seconds:.0f}"
        table.add_row(str(number), "\n".join(run.datasets), _span(run), "\n".join(_reasons(run)), rows, seconds)
    console.print(table)
    console.print("rows and seconds are estimates from what these datasets have written so far", style="dim")


_REASONS = 4


def _reasons(run: PlannedRun) -> list[str]:
    told = [f"{reason}" if count == 1 else f"{reason} ({count})" for reason, count in run.reasons.items()]
    return told if len(told) <= _REASONS else [*told[: _REASONS - 1], f"… {len(told) - _REASONS + 1} more"]


def _span(run: PlannedRun) -> str:
    return run.keys[0] if len(run.keys) == 1 else run.span


def _as_json(run: PlannedRun, past: Past) -> dict[str, Any]:
    estimate = past.estimate(run)
    return {
        "stage": run.stage.name,
        "datasets": list(run.datasets),
        "partitions": list(run.keys),
        "reasons": dict(run.reasons),
        "rows": estimate.rows,
        "seconds": None if estimate.seconds is None else round(estimate.seconds, 1),
    }
