"""`blogdata export`: what a role sees, as files that a group of the machine's users may read."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from blogdata.cli import copies
from blogdata.cli.output import NOTHING_PUBLISHED, TextGrid, console, existing, say_json
from blogdata.cli.role_sight import RoleSight
from blogdata.cli.sql_command import session
from blogdata.durable.switched_folder import CURRENT
from blogdata.errors import ConfigurationError
from blogdata.lake.lake import Lake
from blogdata.patterns.security import role_folders
from blogdata.patterns.security.fine_grained_accessor_for_tables import Role, sight_of
from blogdata.services import exports
from blogdata.services.config import Settings
from blogdata.services.exports import Export
from quality.contracts import EVERY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def export(
    role: Annotated[Role | None, typer.Argument(help="Who reads them; none: list the folders")] = None,
    folder: Annotated[Path | None, typer.Argument(help="Folder outside of the home")] = None,
    group: Annotated[str | None, typer.Option(help="Group of the machine's users that may read it")] = None,
    withdraw: Annotated[bool, typer.Option("--withdraw", help="Remove the copies from the folder")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON")] = False,
) -> None:
    """Write what a role sees of each dataset as Parquet files that its group may read; what has not changed, stays."""
    settings = existing()
    if role is None:
        _list(exports.known(settings), as_json=as_json)
        return
    with exports.alone(settings):
        chosen = copies.chosen(settings, _named(role), folder, group, command=f"blogdata export {role.value}")
        if withdraw:
            console.print(f"withdrawn: {copies.withdraw(settings, chosen):,} files of {chosen.folder}")
            return
        number = copies.number_of(chosen.group)
        exports.remember(settings, chosen)
        found = _write(settings, role, chosen, number)
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
    if role is Role.OWNER:
        raise ConfigurationError(
            what="the owner sees everything, and reads the tables themselves",
            where="export",
            next_step=f"name one of {', '.join(each.value for each in Role if each is not Role.OWNER)}",
        )
    return str(role.value)


def _write(settings: Settings, role: Role, chosen: Export, group: int) -> dict[str, bool]:
    lake, sight = Lake(root=str(settings.lake)), RoleSight(role=role, settings=settings)
    seen = {name: found for name, contract in EVERY.items() if (found := sight_of(contract, role)) is not None}
    versions = lake.versions(sorted(seen))
    if not versions:
        raise ConfigurationError(what="there are no tables yet", where=str(settings.lake), next_step=NOTHING_PUBLISHED)
    for name in role_folders.datasets(chosen.folder) - versions.keys():
        # It was seen before, or there was such a dataset.
        role_folders.remove(chosen.folder, name)
    with session(settings) as spark:
        return {
            name: role_folders.write(
                chosen.folder,
                name,
                role_folders.named(lake, name, version, role_folders.rights_of(seen[name], sight.mark)),
                group,
                partial(_written, spark, lake, sight, name, version),
            )
            for name, version in versions.items()
        }


def _written(spark: SparkSession, lake: Lake, sight: RoleSight, name: str, version: int, folder: Path) -> None:
    role_folders.by_spark(sight.of(spark, lake, name, lake.read(spark, name, version)), folder, "parquet")
