"""`blogdata repair`: finds files that a failing disk has damaged, and lets the next run recompute their contents."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from blogdata.output import agreed, console, say_error, say_json
from errors import ConfigurationError, refuse_unknown
from evidence.events import EventLog
from evidence.repair import Damage, inspect, mend
from lake.lake import Lake
from lake.store_faults import LogDamaged
from quality.contracts import CONTRACTS
from services.config import load


def repair(
    dataset: Annotated[
        str | None, typer.Argument(help="Only this dataset, like silver.visits", show_default=False)
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Mend without asking")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Only tell what is damaged, as JSON")] = False,
) -> None:
    """Look at the files of every table; what is damaged is put aside, and computed again by the next run."""
    refuse_unknown([dataset] if dataset else [], CONTRACTS, where="repair")
    if yes and as_json:
        raise ConfigurationError(
            what="--json only tells what is damaged, --yes mends it", where="repair", next_step="give one of them"
        )
    lake = Lake(root=str(load().lake))
    chosen = [CONTRACTS[dataset]] if dataset else list(CONTRACTS.values())
    found = {contract.dataset: list(inspect(lake, contract.dataset, contract.partition_column)) for contract in chosen}
    damaged = {name: damages for name, damages in found.items() if damages}
    if as_json:
        say_json([_as_json(name, one) for name, damages in damaged.items() for one in damages])
        raise typer.Exit(1 if damaged else 0)
    for name, damages in damaged.items():
        for one in damages:
            place = f", partition '{one.partition}'" if one.partition else ""
            console.print(f"{name}{place}: {one.kind.value} {one.file}: {one.problem}", style="red", markup=False)
    if not damaged:
        console.print(f"{len(chosen)} datasets: all files are there and whole")
        return
    question = "put these files aside, and have the next run compute what they told?"
    if not (yes or agreed(question, otherwise="nothing was mended; to mend it: --yes")):
        raise typer.Exit(1)
    events = EventLog(lake)
    beyond: list[LogDamaged] = []
    for name in damaged:
        try:
            _mend(lake, events, name)
        except LogDamaged as error:
            # Repair the other datasets all the same.
            beyond.append(error)
    if len(beyond) < len(damaged):
        console.print("now run: blogdata run")
    for another in beyond[1:]:
        say_error(another)
    if beyond:
        raise beyond[0]


def _mend(lake: Lake, events: EventLog, name: str) -> None:
    contract = CONTRACTS[name]
    # A repaired log may list data files that are damaged.
    while damages := inspect(lake, name, contract.partition_column):
        for done in mend(lake, events, contract, damages):
            console.print(f"{name}: {done}", markup=False)
        if all(one.partition is not None for one in damages):
            return


def _as_json(dataset: str, one: Damage) -> dict[str, Any]:
    return {
        "dataset": dataset,
        "kind": one.kind.value,
        "file": str(one.file),
        "problem": one.problem,
        "version": one.version,
        "partition": one.partition,
    }
