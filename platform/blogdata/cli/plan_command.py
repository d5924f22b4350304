"""`blogdata plan`: what would run and why."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blogdata.cli.output import (
    NOTHING_LANDED,
    Json,
    TextGrid,
    console,
    existing,
    is_new,
    say_error,
    say_json,
    say_warnings,
)
from blogdata.cli.run_command import EVERYTHING

if TYPE_CHECKING:
    from blogdata.planning.plan import Planned


def plan(as_json: Json = False) -> None:
    """Show what `blogdata run` would do now, and why, as far as can be told before it begins."""
    from blogdata.cli.pipeline import due_tables
    from blogdata.landing.log_splitter import unsplit_logs
    from blogdata.planning import arrivals
    from blogdata.planning.plan import Planner
    from blogdata.runs.zone import snapshot_of
    from quality.contracts import GRAPH, LANDED

    settings = existing()
    look = snapshot_of(settings)
    planned = Planner(graph=GRAPH, look=look).outstanding()
    refused = (*planned.refused, *arrivals.refusals(LANDED.values(), look.zone))
    warnings = arrivals.warnings(LANDED.values(), look, datetime.now(timezone.utc))
    unsplit, tables = unsplit_logs(settings.landing), due_tables(settings, look.events)
    if as_json:
        more: dict[str, Any] = {
            "unsplit": [str(log) for log in unsplit],
            "tables": tables,
            "refused": [str(error) for error in refused],
            "warnings": warnings,
        }
        runs = [
            {"datasets": list(run.datasets), "partitions": list(run.keys), "reasons": dict(run.reasons)}
            for run in planned.runs
        ]
        say_json({"runs": runs, **{name: of for name, of in more.items() if of}})
    else:
        say_warnings(warnings)
        if planned.runs or not refused:
            _show(planned.runs, unsplit, tables, nothing=NOTHING_LANDED if is_new(settings) else EVERYTHING)
    if refused:
        for error in refused[:-1]:
            say_error(error)
        raise refused[-1]


def _show(runs: Sequence[Planned], unsplit: Sequence[Path], tables: Sequence[str], *, nothing: str) -> None:
    if unsplit:
        console.print(f"{len(unsplit)} access log(s) are not split into hours yet: `blogdata run` splits them first")
    if tables:
        console.print(f"{', '.join(tables)} of [tables] are due: `blogdata run` loads them first")
    if not (runs or unsplit or tables):
        console.print(f"nothing to do: {nothing}")
    if not runs:
        return
    table = TextGrid()
    for title in ("", "datasets"):
        table.add_column(title, no_wrap=True)
    table.add_column("partitions, and why")
    for number, run in enumerate(runs, start=1):
        table.add_row(str(number), run.datasets, [run.span, *_reasons(run)])
    console.print(table)


_REASONS = 4


def _reasons(run: Planned) -> list[str]:
    counted = [f"{reason}" if count == 1 else f"{reason} ({count})" for reason, count in run.reasons.items()]
    return counted if len(counted) <= _REASONS else [*counted[: _REASONS - 1], f"… {len(counted) - _REASONS + 1} more"]
