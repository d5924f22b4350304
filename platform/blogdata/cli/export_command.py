"""`blogdata export`: what a role sees, as files that a group of the machine's users may read."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from blogdata.cli.output import TextGrid, console, existing, say_json
from blogdata.cli.sql_command import session
from blogdata.durable.switched_folder import CURRENT
from blogdata.errors import ConfigurationError
from blogdata.patterns.security import role_folders
from blogdata.patterns.security.fine_grained_accessor_for_tables import Role
from blogdata.services import exports
from blogdata.services.exports import Export


def export(
    role: Annotated[Role | None, typer.Argument(help="Who reads them; none: list the folders")] = None,
    folder: Annotated[Path | None, typer.Argument(help="Folder outside of the home")] = None,
    group: Annotated[str | None, typer.Option(help="Group of the machine's users that may read it")] = None,
    withdraw: Annotated[bool, typer.Option("--withdraw", help="Remove the copies from the folder")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON")] = False,
) -> None:
    """Write what a role sees of each dataset as Parquet files that its group may read; what has not changed, stays."""
    from blogdata.operations import copies
    from blogdata.operations.export import write

    settings = existing()
    if role is None:
        _list(exports.known(settings), as_json=as_json)
        return
    with exports.alone(settings):
        chosen = copies.chosen(settings, _named(role), folder, group, command=f"blogdata export {role.value}")
        if withdraw:
            console.print(f"withdrawn: {copies.withdraw(settings, chosen):,} files of {chosen.folder}")
            return
        found = write(settings, chosen, partial(session, settings))
    if as_json:
        say_json([{"dataset": name, "written": is_new} for name, is_new in found.items()])
        return
    table = TextGrid()
    for name in ("dataset", "copy"):
        table.add_column(name)
    for name, is_new in found.items():
        table.add_row(name, "written" if is_new else "as before")
    console.print(table)
    console.print(f"{chosen.folder}/DATASET/{CURRENT}/{role_folders.ROWS}: may be read by {chosen.group}")


def _list(found: Sequence[Export], *, as_json: bool) -> None:
    if as_json:
        say_json([{"role": one.role, "folder": str(one.folder), "group": one.group} for one in found])
        return
    if not found:
        console.print("no role has a folder")
        return
    table = TextGrid()
    for name in ("role", "group", "folder"):
        table.add_column(name)
    for one in found:
        table.add_row(one.role, one.group, str(one.folder))
    console.print(table)


def _named(role: Role) -> str:
    from blogdata.operations.export import ROLES

    if role is Role.OWNER:
        raise ConfigurationError(
            what="the owner sees everything, and reads the tables themselves",
            where="export",
            next_step=f"name one of {', '.join(ROLES)}",
        )
    return str(role.value)
