"""`blogdata export`: what a role sees, as files that a group of the machine's users may read."""

from __future__ import annotations

import grp
import hashlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from blogdata.cli.output import NOTHING_PUBLISHED, TextGrid, console, existing, say_json
from blogdata.cli.role_sight import RoleSight
from blogdata.cli.sql_command import session
from blogdata.durable.switched_folder import CURRENT
from blogdata.errors import ConfigurationError
from blogdata.lake.lake import Lake
from blogdata.patterns.security import role_folders
from blogdata.patterns.security.fine_grained_accessor_for_tables import Role, Shown, Sight, sight_of
from blogdata.services import exports
from blogdata.services.config import Settings
from blogdata.services.exports import Export
from quality.contracts import EVERY

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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
        chosen = _chosen(settings, role, folder, group)
        if withdraw:
            if chosen not in exports.known(settings):
                raise ConfigurationError(
                    what=f"the role {role.value} has no copies there",
                    where=str(chosen.folder),
                    next_step="see which role reads where: blogdata export",
                )
            files = sum(role_folders.remove(chosen.folder, name) for name in role_folders.datasets(chosen.folder))
            exports.drop(settings, chosen)
            console.print(f"withdrawn: {files:,} files of {chosen.folder}")
            return
        number = _number(chosen.group)
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


def _chosen(settings: Settings, role: Role, folder: Path | None, group: str | None) -> Export:
    if role is Role.OWNER:
        raise ConfigurationError(
            what="the owner sees everything, and reads the tables themselves",
            where="export",
            next_step=f"name one of {', '.join(each.value for each in Role if each is not Role.OWNER)}",
        )
    given = None if folder is None else folder.absolute().resolve()
    before = [one for one in exports.known(settings) if one.role == role.value and given in (None, one.folder)]
    if len(before) == 1 and group in (None, before[0].group):
        return before[0]
    if given is None or group is None:
        raise ConfigurationError(
            what=f"it is not known where the role {role.value} reads, or which group it is",
            where="export",
            next_step=f"name both: blogdata export {role.value} FOLDER --group GROUP",
        )
    return Export(role=role.value, folder=given, group=group)


def _number(group: str) -> int:
    try:
        return grp.getgrnam(group).gr_gid
    except KeyError as error:
        raise ConfigurationError(
            what=f"this machine has no group {group}", where="--group", next_step="make it, or name another"
        ) from error


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
                _name(lake, seen[name], version, sight.mark if _is_masked(seen[name]) else ""),
                group,
                partial(_rows, spark, lake, sight, name, version),
            )
            for name, version in versions.items()
        }


def _rows(spark: SparkSession, lake: Lake, sight: RoleSight, name: str, version: int) -> DataFrame:
    return sight.of(spark, lake, name, lake.read(spark, name, version))


def _is_masked(sight: Sight) -> bool:
    return Shown.HASHED in (*sight.columns.values(), *sight.private.values())


def _name(lake: Lake, sight: Sight, version: int, mark: str) -> str:
    """Name a copy after the table, its version, and what the role sees of it, by which key of masks."""
    table = lake.table(sight.dataset)
    assert table is not None
    seen = hashlib.sha256(f"{sight!r}{mark}".encode()).hexdigest()
    return f"{version}-{str(table.metadata().id)[:8]}-{seen[:8]}"
