"""`blogdata rights`: what each job may read and write, and the policies that hold it to that."""

from __future__ import annotations

from typing import Annotated

import typer

from blogdata.cli.output import TextGrid, console, say_json
from blogdata.errors import ConfigurationError, refuse_unknown
from blogdata.patterns.security.fine_grained_accessor_for_resources import JobReach, reach_of, s3_policy
from blogdata.planning.graph import Graph
from quality.contracts import EVERY


def rights(
    job: Annotated[str | None, typer.Argument(help="A dataset; none: every job")] = None,
    s3: Annotated[str | None, typer.Option("--s3", help="Print its policy for a lake at BUCKET/PREFIX")] = None,
    landing: Annotated[str | None, typer.Option(help="The landing zone's BUCKET/PREFIX, for --s3")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON")] = False,
) -> None:
    """Show what each job may read and write, as its contracts declare; with --s3 the policy of an object store."""
    graph = Graph(contracts=EVERY)
    if job is not None:
        refuse_unknown([job], EVERY, where="rights")
    tasks = graph.tasks if job is None else [graph.task_of(job)]
    found = [reach_of(task.contracts) for task in tasks]
    if s3 is not None:
        if job is None:
            raise ConfigurationError(
                what="a policy is for one job",
                where="--s3",
                next_step="name its dataset: blogdata rights DATASET --s3 …",
            )
        say_json(s3_policy(found[0], lake=_folder(s3), landing=_folder(landing or f"{s3.split('/')[0]}/landing")))
    elif as_json:
        say_json([_as_json(reach) for reach in found])
    else:
        table = TextGrid()
        for name in ("job", "reads", "writes"):
            table.add_column(name)
        for reach in found:
            table.add_row(reach.job, ", ".join(_inputs(reach)), ", ".join(sorted(reach.writes)))
        console.print(table)


def _folder(given: str) -> str:
    return given.removeprefix("s3://").rstrip("/")


def _inputs(reach: JobReach) -> list[str]:
    return [*(f"landing.{table}" for table in sorted(reach.landed)), *sorted(reach.reads - reach.writes)]


def _as_json(reach: JobReach) -> dict[str, object]:
    return {"job": reach.job, "reads": _inputs(reach), "writes": sorted(reach.writes)}
