"""`blogdata schema`: may a contract change like this, and which columns retire?"""

from __future__ import annotations

from datetime import date, datetime, timezone
from typing import Annotated, Any

import typer

from blogdata.cli.output import Json, TextGrid, console, errors, existing, say_json
from blogdata.contract.privacy import require_subjects
from blogdata.deliver import lake_views
from blogdata.errors import PlatformError, refuse_unknown
from blogdata.ledger.events import EventLog
from blogdata.operate.config import Settings
from blogdata.patterns.quality import schema_compatibility_enforcer as enforcer
from blogdata.patterns.quality import schema_migrator
from blogdata.patterns.quality.schema_compatibility_enforcer import Release
from blogdata.patterns.quality.schema_migrator import Reader
from blogdata.table import incompatibilities, tables
from blogdata.table.incompatibilities import Incompatibility
from blogdata.table.lake import Lake
from quality.contracts import DECLARED, EVERY, RELEASED

app = typer.Typer(help="Change the schema of a dataset safely.", no_args_is_help=True, add_completion=False)


@app.command()
def check(as_json: Json = False) -> None:
    """Compare the contracts with their released schemas; exit code 1 when a change breaks readers or rows.

    A contract that leaves open whom a column identifies, or keeps statistics of a person's column, is refused too.
    """
    require_subjects(EVERY.values())
    for contract in EVERY.values():
        tables.statistics(contract)
    changed, broken = _compared(enforcer.read(RELEASED))
    if as_json:
        say_json([{"dataset": name, "breaks": [vars(fault) for fault in broken.get(name, ())]} for name in changed])
    for name, faults in broken.items():
        errors.print(str(_refused(name, faults)))
        errors.line()
    if not as_json:
        console.print(f"{len(EVERY)} contracts: {len(broken)} break their readers, {len(changed)} not released yet")
        if changed and not broken:
            console.print(f"to release ({', '.join(changed)}): blogdata schema release")
    if broken:
        raise typer.Exit(1)


@app.command()
def release(
    breaking: Annotated[list[str] | None, typer.Option(help="Release this dataset although it breaks.")] = None,
) -> None:
    """Record the contracts' schemas as released: from now on, consumers may rely on them."""
    allowed = breaking or []
    refuse_unknown(allowed, EVERY, where="--breaking")
    releases = enforcer.read(RELEASED)
    changed, broken = _compared(releases)
    for name, faults in broken.items():
        if name not in allowed:
            raise _refused(name, faults)
    enforcer.write(RELEASED, releases | {name: enforcer.release_of(EVERY[name]) for name in changed})
    console.print(f"released: {', '.join(changed) or 'nothing has changed'}")


def _compared(releases: dict[str, Release]) -> tuple[list[str], dict[str, list[Incompatibility]]]:
    """Return the datasets whose contract differs from its release, and what each breaks that breaks anything."""
    changed = [name for name, contract in EVERY.items() if releases.get(name) != enforcer.release_of(contract)]
    breaking = {name: enforcer.breaks(releases[name], EVERY[name], today()) for name in changed if name in releases}
    return changed, {name: faults for name, faults in breaking.items() if faults}


def _refused(dataset: str, faults: list[Incompatibility]) -> PlatformError:
    return incompatibilities.refused(
        dataset,
        faults,
        where=f"the contract, against {RELEASED.name}",
        next_step="change the contract in steps (docs/how-to/change-a-schema.md); if nobody reads the dataset: "
        f"blogdata schema release --breaking {dataset}",
    )


@app.command()
def migrations(as_json: Json = False) -> None:
    """Show the columns that are being retired: how far each is, and who still reads it."""
    settings = existing()
    lake = Lake(root=str(settings.lake))
    rows: list[dict[str, Any]] = [
        {
            "dataset": contract.dataset,
            "migration": str(migration),
            "phase": schema_migrator.phase(lake, contract, migration).value,
            "grace_ends": migration.ends,
            "read_by": [vars(reader) for reader in _readers(settings, contract.dataset, migration.old)],
        }
        for contract in EVERY.values()
        for migration in contract.migrations
    ]
    if as_json:
        say_json(rows)
        return
    table = TextGrid("dataset", "migration", "phase", "grace ends", "still read by")
    for row in rows:
        read_by = ", ".join(f"{reader['name']} ({reader['owner']})" for reader in row.pop("read_by")) or "-"
        table.add_row(*map(str, row.values()), read_by)
    console.print(table if rows else "no column is being retired")


@app.command()
def remove(
    dataset: Annotated[str, typer.Argument(help="For instance gold.referral_stats")],
    column: Annotated[str, typer.Argument(help="The column, which the contract no longer has.")],
) -> None:
    """Remove a retired column from its table; refused during its grace period, and while it is read."""
    refuse_unknown([dataset], EVERY, where="schema remove")
    settings = existing()
    lake = Lake(root=str(settings.lake))
    readers = _readers(settings, dataset, column)
    version = schema_migrator.remove(lake, EVERY[dataset], column, readers, today=today())
    if version is None:
        console.print(f"{dataset} does not have {column}")
        return
    # Views name the columns that were there.
    lake_views.write(lake, list(EVERY.values()))
    console.print(f"{dataset} version {version} is without {column}; earlier versions still have it")


def _readers(settings: Settings, dataset: str, column: str) -> list[Reader]:
    lake = Lake(root=str(settings.lake))
    return schema_migrator.readers(lake, EventLog(lake), DECLARED, dataset, column, landing=str(settings.landing))


def today() -> date:
    return datetime.now(timezone.utc).date()
