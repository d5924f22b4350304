"""The job `export`: what a role sees, as files that a group of the machine's users may read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg
from pydantic import Field

from blogdata.errors import ConfigurationError
from blogdata.errors.remedies import Remedy, Run
from blogdata.lake.lake import Lake
from blogdata.operations import copies
from blogdata.operations.job import operation
from blogdata.operations.role_sight import RoleSight, mark_of
from blogdata.orchestration.metadata import table
from blogdata.patterns.security import role_folders
from blogdata.patterns.security.fine_grained_accessor_for_tables import Role, sight_of
from blogdata.services import exports
from blogdata.services.config import Settings
from blogdata.services.exports import Export
from quality.contracts import EVERY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROLES = tuple(str(role.value) for role in Role if role is not Role.OWNER)
"""Roles that read copies; the owner reads the tables themselves."""


class ExportConfig(dg.Config):
    """Whose copies are written; their folders and groups are in the settings."""

    role: str = Field("", description="Only this role; empty: every role that has a folder")
    withdraw: bool = Field(False, description="Remove the copies from folders that the settings do not name any more")


def write(
    settings: Settings, chosen: Export, spark: Callable[[], AbstractContextManager[SparkSession]]
) -> dict[str, bool]:
    """Write what a role sees of each dataset into its folder, alone; return whether each was new."""
    group = copies.number_of(chosen.group)
    exports.remember(settings, chosen)
    role = Role(chosen.role)
    lake, sight = Lake(root=str(settings.lake)), RoleSight(role=role, settings=settings)
    seen = {name: found for name, contract in EVERY.items() if (found := sight_of(contract, role)) is not None}
    versions = lake.versions(sorted(seen))
    if not versions:
        raise ConfigurationError(
            what="there are no tables yet", where=str(settings.lake), next_step=Remedy("publish something: ", Run())
        )
    for name in role_folders.datasets(chosen.folder) - versions.keys():
        # It was seen before, or there was such a dataset.
        role_folders.remove(chosen.folder, name)
    with spark() as session:
        return {
            name: role_folders.write(
                chosen.folder,
                name,
                role_folders.named(lake, name, version, role_folders.rights_of(seen[name], mark_of(settings))),
                group,
                partial(_written, session, lake, sight, name, version),
            )
            for name, version in versions.items()
        }


def _written(spark: SparkSession, lake: Lake, sight: RoleSight, name: str, version: int, folder: Path) -> None:
    role_folders.by_spark(sight.of(spark, lake, name, lake.read(spark, name, version)), folder, "parquet")


def _do(context: dg.OpExecutionContext, config: ExportConfig) -> Mapping[str, Any]:
    settings: Settings = context.resources.deployment.settings()
    with exports.alone(settings):
        readers = [config.role] if config.role else ROLES
        if config.withdraw:
            return copies.withdraw(settings, readers)
        rows = [
            {"role": one.role, "dataset": name, "written": is_new, "folder": str(one.folder), "group": one.group}
            for one in copies.required(settings, readers)
            for name, is_new in write(settings, one, context.resources.spark.guard).items()
        ]
    return {"written": sum(bool(row["written"]) for row in rows), **table("copies", rows)}


job = operation(
    "export",
    ExportConfig,
    _do,
    description="Write what roles see of each dataset as Parquet files that their groups may read; what has not "
    "changed, stays",
)
