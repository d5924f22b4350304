"""`blogdata repair`: finds files that a failing disk has damaged, and lets the next run recompute their contents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from blogdata.cli.output import agreed, console, existing, say_error, say_json
from blogdata.errors import ConfigurationError, refuse_unknown
from blogdata.evidence.damage import Damage, DamageKind, inspect
from blogdata.evidence.events import EVENTS, EventLog
from blogdata.evidence.own_tables import inspect_own, mend_own
from blogdata.evidence.repair import mend
from blogdata.lake.lake import Lake
from blogdata.lake.store_faults import LogDamaged
from blogdata.publish.contract import Contract
from quality.contracts import CONTRACTS, EVERY


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
    lake = Lake(root=str(existing().lake))
    # Together with the event log: it tells which versions the others must have.
    own = {} if dataset else dict(inspect_own(lake, EVERY))
    known = EventLog(lake) if EVENTS not in own else None
    chosen = [CONTRACTS[dataset]] if dataset else list(CONTRACTS.values())
    found = {contract.dataset: _inspect(lake, known, contract) for contract in chosen}
    damaged = {name: damages for name, damages in {**own, **found}.items() if damages}
    if as_json:
        say_json([_as_json(name, one) for name, damages in damaged.items() for one in damages])
        raise typer.Exit(1 if damaged else 0)
    for name, damages in damaged.items():
        for one in damages:
            place = f", partition '{one.partition}'" if one.partition else ""
            console.print(f"{name}{place}: {one.kind.value} {one.file}: {one.problem}", style="red")
    if not damaged:
        console.print(f"{len(chosen)} datasets: all files are there and whole")
        return
    question = "put these files aside, and have the next run compute what they told?"
    if not (yes or agreed(question, otherwise="nothing was mended; to mend it: --yes")):
        raise typer.Exit(1)
    _mend_own(lake, own)
    events = EventLog(lake)
    beyond: list[LogDamaged] = []
    # With the event log mended, more may be found than before.
    for name in damaged.keys() - own.keys() if known else [contract.dataset for contract in chosen]:
        try:
            _mend(lake, events, CONTRACTS[name])
        except LogDamaged as error:
            # Repair the other datasets all the same.
            beyond.append(error)
    if own:
        # The publications of a dataset whose log was damaged, too.
        _mend_own(lake, inspect_own(lake, EVERY))
    if len(beyond) < len(damaged):
        console.print("now run: blogdata run")
    for another in beyond[1:]:
        say_error(another)
    if beyond:
        raise beyond[0]


def _inspect(lake: Lake, events: EventLog | None, contract: Contract) -> Sequence[Damage]:
    recorded = -1 if events is None else events.recorded(contract.dataset)
    return inspect(lake, contract.dataset, contract.partition_column, recorded=recorded)


def _mend_own(lake: Lake, damaged: Mapping[str, Sequence[Damage]]) -> None:
    for name in damaged:
        console.print(f"{name}: {mend_own(lake, name, EVERY)}")


def _mend(lake: Lake, events: EventLog, contract: Contract) -> None:
    # A repaired log may list data files that are damaged.
    while damages := _inspect(lake, events, contract):
        for done in mend(lake, events, contract, damages):
            console.print(f"{contract.dataset}: {done}")
        if all(one.partition is not None or one.kind is DamageKind.CHECKSUMS for one in damages):
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
