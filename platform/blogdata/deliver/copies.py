"""The jobs `export` and `replicate`: copies of tables in folders that the settings name, for others on the machine.

`export` writes what a role sees of each dataset as Parquet files; `replicate` writes the tables into a second lake, for
staging, without a value that leads to a person. A group of the machine's users reads each folder.
"""

from __future__ import annotations

import grp
import json
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg
from pydantic import Field

from blogdata.contract.column_types import of_delta
from blogdata.contract.contract import Contract
from blogdata.contract.migrations import carried
from blogdata.deliver import exports, role_folders
from blogdata.deliver.exports import Export
from blogdata.deliver.query import RoleSight, mark_of, offer_masks
from blogdata.errors import ConfigurationError, refuse_unknown
from blogdata.errors.remedies import Remedy, Run
from blogdata.operate.config import Settings
from blogdata.patterns.security import transformation_replicator
from blogdata.patterns.security.fine_grained_accessor_for_tables import Role, sight_of
from blogdata.runs.job import operation
from blogdata.runs.run_values import table
from blogdata.table.lake import Lake
from quality.contracts import EVERY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROLES = tuple(str(role.value) for role in Role if role is not Role.OWNER)
"""Roles that read copies; the owner reads the tables themselves."""
READER = "staging"
"""Who reads the copies of `replicate`."""

Spark = Callable[[], AbstractContextManager["SparkSession"]]


def named(settings: Settings, readers: Collection[str]) -> list[Export]:
    """List the folders of some readers that the settings name; no other one gets copies."""
    places = ((reader, getattr(settings.copies, reader)) for reader in sorted(readers))
    return [Export(role=reader, folder=place.folder, group=place.group) for reader, place in places if place]


def withdraw(settings: Settings, readers: Collection[str]) -> int:
    """Remove all copies from the folders of some readers that the settings do not name (any more); count the files."""
    kept = named(settings, readers)
    gone = [one for one in exports.known(settings) if one.role in readers and one not in kept]
    files = sum(role_folders.remove(one.folder, name) for one in gone for name in role_folders.datasets(one.folder))
    for one in gone:
        exports.drop(settings, one)
    return files


def _written(
    settings: Settings, readers: Collection[str], write: Callable[[Export], Mapping[str, bool]]
) -> Mapping[str, Any]:
    """Withdraw the copies of folders that are not named any more, and write those of the others."""
    with exports.alone(settings):
        withdrawn, found = withdraw(settings, readers), named(settings, readers)
        if not (withdrawn or found):
            raise ConfigurationError(
                what=f"no folder is named for {', '.join(readers)}",
                where=str(settings.home / "blogdata.toml"),
                next_step="write [copies.READER] with folder and group into it: a run cannot choose where copies go",
            )
        rows = [
            {"role": one.role, "dataset": name, "written": is_new, "folder": str(one.folder), "group": one.group}
            for one in found
            for name, is_new in write(one).items()
        ]
    return {"written": sum(bool(row["written"]) for row in rows), "files_withdrawn": withdrawn, **table("copies", rows)}


def _number_of(group: str) -> int:
    try:
        return grp.getgrnam(group).gr_gid
    except KeyError as error:
        raise ConfigurationError(
            what=f"this machine has no group {group}", where="[copies]", next_step="make it, or name another"
        ) from error


def _versions(lake: Lake, names: Iterable[str]) -> Mapping[str, int]:
    if versions := lake.versions(sorted(names)):
        return versions
    raise ConfigurationError(
        what="there are no tables yet", where=lake.root, next_step=Remedy("publish something: ", Run())
    )


class ExportConfig(dg.Config):
    """Whose copies are written; their folders and groups are in the settings."""

    role: str = Field("", description="Only this role; empty: every role that has a folder")


def export(settings: Settings, chosen: Export, spark: Spark) -> dict[str, bool]:
    """Write what a role sees of each dataset into its folder, alone; return whether each was new."""
    group = _number_of(chosen.group)
    exports.remember(settings, chosen)
    role = Role(chosen.role)
    lake, sight = Lake(root=str(settings.lake)), RoleSight(role=role, settings=settings)
    seen = {name: found for name, contract in EVERY.items() if (found := sight_of(contract, role)) is not None}
    versions = _versions(lake, seen)
    for name in role_folders.datasets(chosen.folder) - versions.keys():
        # It was seen before, or there was such a dataset.
        role_folders.remove(chosen.folder, name)

    def written(session: SparkSession, name: str, version: int, folder: Path) -> None:
        role_folders.by_spark(sight.of(session, lake, name, lake.read(session, name, version)), folder, "parquet")

    with spark() as session:
        return {
            name: role_folders.write(
                chosen.folder,
                name,
                role_folders.named(lake, name, version, role_folders.rights_of(seen[name], mark_of(settings))),
                group,
                partial(written, session, name, version),
            )
            for name, version in versions.items()
        }


def _export(context: dg.OpExecutionContext, config: ExportConfig) -> Mapping[str, Any]:
    settings: Settings = context.resources.deployment.settings()
    spark, roles = context.resources.spark.guard, [config.role] if config.role else ROLES
    return _written(settings, roles, lambda place: export(settings, place, spark))


class ReplicateConfig(dg.Config):
    """Which tables are copied; the folder and its group are in the settings."""

    datasets: list[str] = Field([], description="Only these datasets; empty: all")


def replicate(settings: Settings, chosen: Export, datasets: Iterable[str], spark: Spark) -> dict[str, bool]:
    """Copy tables into staging's lake; return whether each was new. Nobody else may do so now."""
    number, mark = _number_of(chosen.group), mark_of(settings)
    lake = Lake(root=str(settings.lake))
    versions = _versions(lake, [*datasets] or EVERY)
    contracts = {name: carried(EVERY[name], lake.table(name)) for name in versions}
    for name, contract in contracts.items():
        _require_classified(lake, contract, versions[name])
    exports.remember(settings, chosen)
    for name in role_folders.datasets(chosen.folder) - EVERY.keys():
        role_folders.remove(chosen.folder, name)
    written = {}
    with spark() as session:
        offer_masks(session, settings, transformation_replicator.PURPOSE)
        for name, contract in contracts.items():
            sight = transformation_replicator.sight_of(contract)
            assert sight is not None
            copy = role_folders.named(lake, name, versions[name], role_folders.rights_of(sight, mark))
            write = partial(_transformed, session, lake, contract, versions[name])
            written[name] = role_folders.write(chosen.folder, name, copy, number, write)
            role_folders.show_as_lake(chosen.folder, name, number)
    return written


def _transformed(session: SparkSession, lake: Lake, contract: Contract, version: int, target: Path) -> None:
    rows = transformation_replicator.transformed(lake.read(session, contract.dataset, version), contract)
    by = [column for column in rows.columns if column == contract.partition_column]
    role_folders.by_spark(rows, target, "delta", by)


def _require_classified(lake: Lake, contract: Contract, version: int) -> None:
    """Refuse columns of which nobody has said whom they identify."""
    for part in lake.parts(contract.dataset, version):
        stored = of_delta(json.loads(part.table.schema().to_json()))
        transformation_replicator.require_classified(contract, stored)


def _replicate(context: dg.OpExecutionContext, config: ReplicateConfig) -> Mapping[str, Any]:
    settings: Settings = context.resources.deployment.settings()
    refuse_unknown(config.datasets, EVERY, where="replicate")
    spark = context.resources.spark.guard
    return _written(settings, [READER], lambda place: replicate(settings, place, config.datasets, spark))


export_job = operation(
    "export",
    ExportConfig,
    _export,
    description="Write what roles see of each dataset as Parquet files that their groups may read; what has not "
    "changed, stays",
)
replicate_job = operation(
    "replicate",
    ReplicateConfig,
    _replicate,
    description="Copy the tables into a second lake, for staging, without values of persons; what has not changed, "
    "stays",
)
