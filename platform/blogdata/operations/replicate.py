"""The job `replicate`: the tables in a second lake, for staging, without a value that leads to a person."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, ExitStack, suppress
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg
from pydantic import Field

from blogdata.errors import ConfigurationError, refuse_unknown
from blogdata.errors.remedies import Remedy, Run
from blogdata.lake.lake import Lake
from blogdata.operations import copies
from blogdata.operations.job import operation
from blogdata.operations.role_sight import mark_of, offer_masks
from blogdata.orchestration.metadata import table
from blogdata.patterns.ingestion import replicated_tables
from blogdata.patterns.ingestion.replicated_tables import SourceMoved
from blogdata.patterns.security import role_folders, transformation_replicator
from blogdata.publish.column_types import of_delta
from blogdata.publish.contract import Contract
from blogdata.publish.migrations import carried
from blogdata.services import exports
from blogdata.services.config import Settings
from blogdata.services.exports import Export
from quality.contracts import EVERY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

READER = "staging"
"""Who reads the copies, beside the roles."""
AS_IT_IS, TRANSFORMED = "byte for byte", "transformed"
_ATTEMPTS = 3


class ReplicateConfig(dg.Config):
    """Which tables are copied; the folder and its group are in the settings."""

    datasets: list[str] = Field([], description="Only these datasets; empty: all")
    withdraw: bool = Field(False, description="Remove the copies from folders that the settings do not name any more")


def replicate(
    settings: Settings,
    chosen: Export,
    datasets: Iterable[str],
    spark: Callable[[], AbstractContextManager[SparkSession]],
) -> dict[str, tuple[str, bool]]:
    """Copy tables into staging's lake; return how each got there, and whether it was new. Nobody else may do so now."""
    number = copies.number_of(chosen.group)
    lake = Lake(root=str(settings.lake))
    contracts = _contracts(lake, [*datasets] or [*EVERY])
    exports.remember(settings, chosen)
    for name in role_folders.datasets(chosen.folder) - EVERY.keys():
        role_folders.remove(chosen.folder, name)
    with ExitStack() as opened:
        # Opened once somebody asks for it: copies of bytes need no masks.
        @cache
        def session() -> SparkSession:
            found = opened.enter_context(spark())
            offer_masks(found, settings, transformation_replicator.PURPOSE)
            return found

        target = _Target(chosen.folder, number, lake, session, mark_of(settings))
        return {name: target.replicated(contract) for name, contract in contracts.items()}


def _contracts(lake: Lake, names: list[str]) -> Mapping[str, Contract]:
    """Find the datasets that have a table, and refuse columns of which nobody has said whom they identify."""
    versions = lake.versions(sorted(names))
    if not versions:
        raise ConfigurationError(
            what="there are no tables yet", where=lake.root, next_step=Remedy("publish something: ", Run())
        )
    contracts = {name: carried(EVERY[name], lake.table(name)) for name in versions}
    for name, contract in contracts.items():
        _require_classified(lake, contract, versions[name])
    return contracts


def _require_classified(lake: Lake, contract: Contract, version: int) -> None:
    for part in lake.parts(contract.dataset, version):
        stored = of_delta(json.loads(part.table.schema().to_json()))
        transformation_replicator.require_classified(contract, stored)


class _Target:
    """The folder, and how a dataset gets into it."""

    def __init__(self, folder: Path, group: int, lake: Lake, spark: Callable[[], SparkSession], mark: str) -> None:
        self._folder, self._group, self._lake, self._spark, self._mark = folder, group, lake, spark, mark

    def replicated(self, contract: Contract) -> tuple[str, bool]:
        """Copy the newest version of a dataset; return how, and whether there was something to write."""
        for _ in range(_ATTEMPTS - 1):
            # If it moves on, a newer version is there by now.
            with suppress(SourceMoved):
                return self._newest(contract)
        return self._newest(contract)

    def _newest(self, contract: Contract) -> tuple[str, bool]:
        name = contract.dataset
        (version,) = self._lake.versions([name]).values()
        # It may be newer than the one that was looked at before.
        _require_classified(self._lake, contract, version)
        is_copied = not transformation_replicator.leads_to_persons(contract)
        is_copied = is_copied and replicated_tables.is_whole_in_files(self._lake, name)
        if is_copied:
            seen = AS_IT_IS
        else:
            sight = transformation_replicator.sight_of(contract)
            assert sight is not None
            seen = role_folders.rights_of(sight, self._mark)
        copy = role_folders.named(self._lake, name, version, seen)
        write = self._copied if is_copied else self._transformed
        is_new = role_folders.write(self._folder, name, copy, self._group, partial(write, contract, version, copy))
        role_folders.show_as_lake(self._folder, name, self._group)
        return AS_IT_IS if is_copied else TRANSFORMED, is_new

    def _copied(self, contract: Contract, version: int, name: str, copy: Path) -> None:
        replicated_tables.copy_table(self._lake, contract.dataset, version, copy)
        self._keep_readable(contract.dataset, name, copy)

    def _transformed(self, contract: Contract, version: int, name: str, copy: Path) -> None:
        stored = self._lake.read(self._spark(), contract.dataset, version)
        rows = transformation_replicator.transformed(stored, contract)
        by = [column for column in rows.columns if column == contract.partition_column]
        role_folders.by_spark(rows, copy, "delta", by)
        self._keep_readable(contract.dataset, name, copy)

    def _keep_readable(self, dataset: str, name: str, copy: Path) -> None:
        before = role_folders.staying(self._folder, dataset, name)
        if before is not None:
            replicated_tables.keep_readable(before, copy)


def _do(context: dg.OpExecutionContext, config: ReplicateConfig) -> Mapping[str, Any]:
    settings: Settings = context.resources.deployment.settings()
    refuse_unknown(config.datasets, EVERY, where="replicate")
    with exports.alone(settings):
        if config.withdraw:
            return copies.withdraw(settings, [READER])
        rows = [
            {"dataset": name, "how": how, "written": is_new, "folder": str(one.folder), "group": one.group}
            for one in copies.required(settings, [READER])
            for name, (how, is_new) in replicate(settings, one, config.datasets, context.resources.spark.guard).items()
        ]
    return {"written": sum(bool(row["written"]) for row in rows), **table("copies", rows)}


job = operation(
    "replicate",
    ReplicateConfig,
    _do,
    description="Copy the tables into a second lake, for staging, without values of persons; what has not changed, "
    "stays",
)
