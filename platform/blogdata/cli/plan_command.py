"""`blogdata plan`: what would run and why, for what has changed or for partitions that a person wants to run again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from blogdata.cli.output import (
    NOTHING_LANDED,
    TextGrid,
    agreed,
    console,
    existing,
    is_new,
    say_error,
    say_json,
    say_warnings,
)
from blogdata.cli.run_command import EVERYTHING, say
from blogdata.errors import ConfigurationError, refuse_unknown
from blogdata.evidence.events import EventLog
from blogdata.lake.lake import Lake
from blogdata.services.config import Settings
from quality.contracts import CONTRACTS

if TYPE_CHECKING:
    from blogdata.cli.outcome import Outcome
    from blogdata.planning.plan import Plan, Planned
    from blogdata.planning.snapshot import Snapshot


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
    """Show what would run, with reasons and time; then ask whether to run it.

    Without --replay it is what `blogdata run` would do now, as far as can be told before it begins.
    """
    from blogdata.cli.pipeline import due_tables
    from blogdata.patterns.ingestion.log_splitter import unsplit_logs
    from blogdata.planning import arrivals
    from blogdata.planning.plan import ASKED, Planner
    from blogdata.planning.snapshot import Snapshot
    from quality.contracts import GRAPH, LANDED
    from resources.zone import zone_of

    refuse_unknown([replay] if replay else [], CONTRACTS, where="--replay")
    settings = existing()
    look = Snapshot(zone_of(settings), EventLog(Lake(root=str(settings.lake))))
    planner = Planner(graph=GRAPH, look=look)
    warnings: list[str] = []
    if replay is None:
        if partitions is not None:
            raise ConfigurationError(
                what="partitions of which dataset?", where="--partitions", next_step="add: --replay DATASET"
            )
        planned = planner.outstanding()
        planned = replace(planned, refused=(*planned.refused, *arrivals.refusals(LANDED.values(), look.zone)))
        warnings = arrivals.warnings(LANDED.values(), look, datetime.now(timezone.utc))
    else:
        keys = planner.resolve_keys(replay, partitions)
        planned = planner.plan_of_replay({replay: dict.fromkeys(keys, ASKED)})
    runs, outcome = planned.runs, None
    unsplit = unsplit_logs(settings.landing) if replay is None else []
    tables = due_tables(settings, look.events) if replay is None else []
    if not as_json:
        say_warnings(warnings)
    if as_json:
        outcome = _run(settings, planned, quiet=True) if runs and yes else None
        more: dict[str, Any] = {
            "unsplit": [str(log) for log in unsplit],
            "tables": tables,
            "refused": [str(error) for error in planned.refused],
            "warnings": warnings,
            "result": outcome and outcome.as_json(),
        }
        say_json({"runs": [_as_json(run, look) for run in runs], **{name: of for name, of in more.items() if of}})
    elif runs or not planned.refused:
        show(runs, look, unsplit, tables, nothing=NOTHING_LANDED if is_new(settings) else EVERYTHING)
        wanted = runs and (yes or agreed("run it?", otherwise="nothing was run; to run it: --yes"))
        outcome = _run(settings, planned, quiet=False) if wanted else None
        if outcome is not None:
            say(outcome)
    if planned.refused:
        for error in planned.refused[:-1]:
            say_error(error)
        raise planned.refused[-1]
    if outcome is not None and not outcome.ok:
        raise typer.Exit(1)


def _run(settings: Settings, planned: Plan, *, quiet: bool) -> Outcome:
    from blogdata.cli.pipeline import Pipeline

    return Pipeline(settings, quiet=quiet, command="blogdata plan").run_plan(planned)


def show(
    runs: Sequence[Planned],
    look: Snapshot,
    unsplit: Sequence[Path] = (),
    tables: Sequence[str] = (),
    *,
    nothing: str,
) -> None:
    from blogdata.planning.plan import estimate

    if unsplit:
        console.print(
            f"{len(unsplit)} access log(s) are not split into hours yet: `blogdata run` does that first, and then "
            "what comes of it"
        )
    if tables:
        console.print(
            f"{', '.join(tables)} of [tables] are due: `blogdata run` loads them first, and then what comes of it"
        )
    if not runs:
        if not (unsplit or tables):
            console.print(f"nothing to do: {nothing}")
        return
    table = TextGrid()
    for title in ("", "datasets"):
        table.add_column(title, no_wrap=True)
    stacked = console.width < _SIDE_BY_SIDE
    for title in ("partitions, and why",) if stacked else ("partitions", "why"):
        table.add_column(title)
    for title in ("rows", "seconds"):
        table.add_column(title, justify="right", no_wrap=True)
    for number, run in enumerate(runs, start=1):
        expected = estimate(look, run)
        rows = "?" if expected.rows is None else f"~{expected.rows:,}"
        seconds = "?" if expected.seconds is None else f"~{expected.seconds:.0f}"
        why = [[run.span, *_reasons(run)]] if stacked else [run.span, _reasons(run)]
        table.add_row(str(number), run.datasets, *why, rows, seconds)
    console.print(table)
    console.print("rows and seconds are estimates from what these datasets have written so far", style="dim")


_REASONS = 4
_SIDE_BY_SIDE = 120
"""Columns of a terminal that has place for partitions and reasons beside each other."""


def _reasons(run: Planned) -> list[str]:
    counted = [f"{reason}" if count == 1 else f"{reason} ({count})" for reason, count in run.reasons.items()]
    return counted if len(counted) <= _REASONS else [*counted[: _REASONS - 1], f"… {len(counted) - _REASONS + 1} more"]


def _as_json(run: Planned, look: Snapshot) -> dict[str, Any]:
    from blogdata.planning.plan import estimate

    expected = estimate(look, run)
    return {
        "datasets": list(run.datasets),
        "partitions": list(run.keys),
        "reasons": dict(run.reasons),
        "rows": expected.rows,
        "seconds": None if expected.seconds is None else round(expected.seconds, 1),
    }
