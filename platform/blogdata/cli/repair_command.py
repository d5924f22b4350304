"""`blogdata repair`: finds files that a failing disk has damaged, and lets the next run recompute their contents."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from blogdata.cli.output import agreed, console, existing, say_error, say_json
from blogdata.errors import ConfigurationError
from blogdata.evidence.damage import Damage
from blogdata.lake.lake import Lake
from quality.contracts import CONTRACTS


def repair(
    dataset: Annotated[
        str | None, typer.Argument(help="Only this dataset, like silver.visits", show_default=False)
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Mend without asking")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Only tell what is damaged, as JSON")] = False,
) -> None:
    """Look at the files of every table; what is damaged is put aside, and computed again by the next run."""
    from blogdata.operations.repair import look, put_aside

    if yes and as_json:
        raise ConfigurationError(
            what="--json only tells what is damaged, --yes mends it", where="repair", next_step="give one of them"
        )
    lake = Lake(root=str(existing().lake))
    damaged = look(lake, dataset)
    if as_json:
        say_json([_as_json(name, one) for name, damages in damaged.items() for one in damages])
        raise typer.Exit(1 if damaged else 0)
    for name, damages in damaged.items():
        for one in damages:
            place = f", partition '{one.partition}'" if one.partition else ""
            console.print(f"{name}{place}: {one.kind.value} {one.file}: {one.problem}", style="red")
    if not damaged:
        console.print(f"{1 if dataset else len(CONTRACTS)} datasets: all files are there and whole")
        return
    question = "put these files aside, and have the next run compute what they told?"
    if not (yes or agreed(question, otherwise="nothing was mended; to mend it: --yes")):
        raise typer.Exit(1)
    beyond = put_aside(lake, damaged, dataset, console.print)
    if len(beyond) < len(damaged):
        console.print("now run: blogdata run")
    for another in beyond[1:]:
        say_error(another)
    if beyond:
        raise beyond[0]


def _as_json(dataset: str, one: Damage) -> dict[str, Any]:
    return {
        "dataset": dataset,
        "kind": one.kind.value,
        "file": str(one.file),
        "problem": one.problem,
        "version": one.version,
        "partition": one.partition,
    }
