"""`blogdata rights`: what each job may reach, and what each role sees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from blogdata.cli.output import Json, TextGrid, console, say_json
from blogdata.contract.contract import Contract
from blogdata.errors import refuse_unknown
from blogdata.patterns.security.fine_grained_accessor_for_resources import reach_of
from blogdata.patterns.security.fine_grained_accessor_for_tables import PRIVATE, Role, Shown, Sight, sight_of
from blogdata.planning.graph import Graph
from quality.contracts import EVERY


def rights(
    job: Annotated[str | None, typer.Argument(help="A dataset; none: every job")] = None,
    roles: Annotated[bool, typer.Option("--roles", help="Show what each role sees of it instead")] = False,
    as_json: Json = False,
) -> None:
    """Show what each job may read and write, or what each role sees."""
    graph = Graph(contracts=EVERY)
    if job is not None:
        refuse_unknown([job], EVERY, where="rights")
    if roles:
        _show_roles([EVERY[job]] if job is not None else list(EVERY.values()), as_json=as_json)
        return
    tasks = graph.tasks if job is None else [graph.task_of(job)]
    reaches = [reach_of(task.contracts) for task in tasks]
    rows = [{"job": it.job, "reads": sorted(it.reads - it.writes), "writes": sorted(it.writes)} for it in reaches]
    if as_json:
        say_json(rows)
        return
    table = TextGrid("job", "reads", "writes")
    for row in rows:
        table.add_row(str(row["job"]), ", ".join(row["reads"]), ", ".join(row["writes"]))
    console.print(table)


def _show_roles(contracts: Sequence[Contract], *, as_json: bool) -> None:
    seen = [(contract, role, sight_of(contract, role)) for contract in contracts for role in Role]
    if as_json:
        say_json(
            [
                {
                    "dataset": contract.dataset,
                    "role": role.value,
                    "rows": sight.rows,
                    "columns": dict(sight.columns),
                    "private": dict(sight.private),
                }
                for contract, role, sight in seen
                if sight is not None
            ]
        )
        return
    table = TextGrid("dataset", "role", "rows", "columns")
    for contract, role, sight in seen:
        rows = "none" if sight is None else sight.rows.replace("`", "") or "all"
        columns = [] if sight is None else [_column(name, sight) for name in sight.columns]
        table.add_row(contract.dataset, role.value, rows, ", ".join(columns))
    console.print(table)


def _column(name: str, sight: Sight) -> str:
    usual, private = sight.columns[name], sight.private.get(name)
    marks = [] if usual is Shown.AS_IT_IS else [usual.value]
    marks += [f"{private.value} where {PRIVATE}"] if private else []
    return f"{name} ({', '.join(marks)})" if marks else name
