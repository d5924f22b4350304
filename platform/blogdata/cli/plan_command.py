"""`blogdata plan`: what would run and why, for what has changed or for partitions that a person wants to run again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from functools import partial
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
from blogdata.publish.partitions import Grain, contiguous
from blogdata.services.config import Settings
from quality.contracts import CONTRACTS

if TYPE_CHECKING:
    from blogdata.cli.outcome import Outcome
    from blogdata.planning.plan import Plan, Planned, Planner
    from blogdata.planning.snapshot import Snapshot

BRONZE = "bronze.visits"


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
        warnings += [line for run in planned.runs for line in _failed_before(planner, run)]
    else:
        keys = planner.resolve_keys(replay, partitions)
        planned = planner.plan_of_replay({replay: dict.fromkeys(keys, ASKED)})
    runs, outcome = planned.runs, None
    offered = _judged_otherwise(settings, look, planned) if replay is None else []
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
            "offered": {BRONZE: offered} if offered else {},
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
    if offered and not as_json:
        _show_offer(offered, look)
    if planned.refused:
        for error in planned.refused[:-1]:
            say_error(error)
        raise planned.refused[-1]
    if outcome is not None and not outcome.ok:
        raise typer.Exit(1)


def _judged_otherwise(settings: Settings, look: Snapshot, planned: Plan) -> list[str]:
    """Find the published hours whose log lines would be judged otherwise now, except those that run anyway."""
    from assets.bronze import judged_again
    from blogdata.services import spark_attached

    spark = partial(spark_attached.guarded, settings)
    found = judged_again.changed_hours(look.published(BRONZE), look.events, settings.logs, spark)
    run = planned.wanted().get(BRONZE, ())
    return [hour for hour in found if hour not in run]


def _show_offer(hours: Sequence[str], look: Snapshot) -> None:
    logs = f"{len(hours):,} of {len(look.published(BRONZE)):,} published hours"
    console.print(f"{logs} have log lines that the lists of crawlers or the settings of today judge otherwise.")
    console.print(f"They stay as they are until they are computed again: {_command(hours)}")


def _command(hours: Sequence[str]) -> str:
    ranges = contiguous(hours, Grain.HOUR)
    spans = [first if first == last else f"{first}..{last}" for first, last in ranges]
    return f"blogdata plan --replay {BRONZE} --partitions {','.join(spans)}"


def _failed_before(planner: Planner, run: Planned) -> Iterator[str]:
    """Say which partitions of a planned run have failed already, and will again unless their cause is mended."""
    from blogdata.planning.plan import spanned

    reasons: dict[str, list[str]] = {}
    for key, error in planner.failed(run.task).items():
        reasons.setdefault(f"{error.what}, in {error.where}; {error.next_step}", []).append(key)
    for why, keys in reasons.items():
        span = spanned(sorted(keys), run.task.grain)
        yield f"{run.task.main} {span} has failed, and its input has not changed since: {why}"


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
