"""`blogdata schema`: may a contract change like this, and which columns retire?"""

from __future__ import annotations

from datetime import date, datetime, timezone
from pathlib import Path
from typing import Annotated

import typer

from blogdata.cli.output import TextGrid, console, errors, existing, say_json
from blogdata.errors import refuse_unknown
from blogdata.evidence.events import EventLog
from blogdata.lake.lake import Lake
from blogdata.patterns.data_value import lake_views
from blogdata.patterns.observability import column_readers
from blogdata.patterns.observability.column_readers import Reader
from blogdata.patterns.quality import schema_migrator, schema_releases
from blogdata.publish import file_statistics, incompatibilities
from blogdata.publish.privacy import require_subjects
from blogdata.services.config import Settings
from quality.contracts import DECLARED, EVERY, RELEASED

app = typer.Typer(help="Change the schema of a dataset safely.", no_args_is_help=True, add_completion=False)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
File = Annotated[Path, typer.Option("--file", help="File of the released versions.")]


@app.command()
def check(file: File = RELEASED, as_json: Json = False) -> None:
    """Compare the contracts with their released versions; exit code 1 when a change breaks readers or rows.

    A contract that leaves open whom a column identifies, or keeps statistics of a person's column, is refused too.
    """
    require_subjects(EVERY.values())
    for contract in EVERY.values():
        file_statistics.properties(contract)
    found = schema_releases.compare(schema_releases.read(file), EVERY.values(), today())
    broken = [one for one in found if one.breaks]
    changed = [one.dataset for one in found if one.changed]
    if as_json:
        say_json(
            [
                {"dataset": one.dataset, "changed": one.changed, "breaks": [vars(fault) for fault in one.breaks]}
                for one in found
                if one.changed or one.breaks
            ]
        )
    for one in broken:
        fault = incompatibilities.refused(
            one.dataset,
            one.breaks,
            where=f"the contract, against {file.name}; its mode is {EVERY[one.dataset].compatibility.value}",
            next_step="change the contract in steps (docs/how-to/change-a-schema.md); if nobody reads the dataset: "
            f"blogdata schema release --breaking {one.dataset}",
        )
        errors.print(str(fault))
        errors.line()
    if not as_json:
        console.print(f"{len(found)} contracts: {len(broken)} break their readers, {len(changed)} not released yet")
        if changed and not broken:
            console.print(f"to release ({', '.join(changed)}): blogdata schema release")
    if broken:
        raise typer.Exit(1)


@app.command()
def release(
    file: File = RELEASED,
    breaking: Annotated[
        list[str] | None,
        typer.Option(help="Release this dataset although it breaks; earlier versions no longer count."),
    ] = None,
) -> None:
    """Record the contracts' schemas as released: from now on, consumers may rely on them."""
    allowed = breaking or []
    refuse_unknown(allowed, EVERY, where="--breaking")
    releases = schema_releases.read(file)
    for one in schema_releases.compare(releases, EVERY.values(), today()):
        if one.breaks and one.dataset not in allowed:
            raise incompatibilities.refused(
                one.dataset,
                one.breaks,
                where=f"the contract, against {file.name}",
                next_step="nothing was released; change the contract in steps (docs/how-to/change-a-schema.md)",
            )
    every, added = schema_releases.add(releases, EVERY.values(), today(), breaking=allowed)
    schema_releases.write(file, every)
    for dataset in added:
        console.print(f"{dataset}: version {len(every[dataset])}")
    if not added:
        console.print("nothing has changed since the last release")


@app.command()
def migrations(as_json: Json = False) -> None:
    """Show the columns that are being retired: how far each is, who still reads it, and what is next."""
    settings = existing()
    lake = Lake(root=str(settings.lake))
    found = [
        schema_migrator.status(lake, contract, each, _readers(settings, contract.dataset, each.old), today())
        for contract in EVERY.values()
        for each in contract.migrations
    ]
    if as_json:
        say_json(
            [
                {
                    "dataset": one.dataset,
                    "migration": str(one.migration),
                    "phase": one.phase.value,
                    "grace_ends": one.migration.ends,
                    "read_by": [vars(reader) for reader in one.readers],
                    "next": str(one.next_step),
                }
                for one in found
            ]
        )
        return
    table = TextGrid("dataset", "migration", "phase", "grace ends", "still read by", "next")
    for one in found:
        read_by = ", ".join(f"{reader.name} ({reader.owner})" for reader in one.readers) or "-"
        table.add_row(
            one.dataset, str(one.migration), one.phase.value, f"{one.migration.ends}", read_by, str(one.next_step)
        )
    console.print(table if found else "no column is being retired")


@app.command()
def remove(
    dataset: Annotated[str, typer.Argument(help="For instance gold.referral_stats")],
    column: Annotated[str, typer.Argument(help="The column, which the contract no longer has.")],
) -> None:
    """Remove a retired column from its table; refused during its grace period, and while anybody reads it."""
    refuse_unknown([dataset], EVERY, where="schema remove")
    settings = existing()
    lake = Lake(root=str(settings.lake))
    readers = _readers(settings, dataset, column)
    version = schema_migrator.remove(lake, EventLog(lake), EVERY[dataset], column, readers, today=today())
    if version is None:
        console.print(f"{dataset} does not have {column}")
        return
    # Views name the columns that were there.
    lake_views.write(lake, list(EVERY.values()))
    console.print(f"{dataset} version {version} is without {column}; earlier versions still have it")


def _readers(settings: Settings, dataset: str, column: str) -> list[Reader]:
    lake = Lake(root=str(settings.lake))
    return column_readers.readers(lake, EventLog(lake), DECLARED, dataset, column, landing=str(settings.landing))


def today() -> date:
    return datetime.now(timezone.utc).date()
