"""The job `replicate`: tables are copied into a second lake, for staging, without a value that leads to a person.

The settings name its folder, outside of the home, and the group of the machine's users that reads it. A copy is written
beside the one before it, and a link in the place of the table is switched to it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from grp import getgrnam
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import dagster as dg
from pydantic import Field

from blogdata import files
from blogdata.contract.column_types import of_delta
from blogdata.contract.contract import Contract
from blogdata.contract.migrations import carried
from blogdata.deliver.query import SECRET, offer_masks
from blogdata.errors import ConfigurationError, refuse_unknown
from blogdata.operate import secrets
from blogdata.operate.config import Settings
from blogdata.patterns.security import pseudo_anonymizer, transformation_replicator
from blogdata.runs.job import operation
from blogdata.runs.names import table
from blogdata.table.lake import Lake
from quality.contracts import EVERY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_COPIES = ".copies"
"""Folder of the second lake with the tables that its links lead to."""


class ReplicateConfig(dg.Config):
    """Which tables are copied; the folder and its group are in the settings."""

    datasets: list[str] = Field([], description="Only these datasets; empty: all")


def replicate(
    settings: Settings, datasets: Iterable[str], spark: Callable[[], AbstractContextManager[SparkSession]]
) -> dict[str, bool]:
    """Copy the newest version of tables; return whether each was new. Its caller is alone at the folder."""
    folder, group = _folder(settings)
    copies, lake = folder / _COPIES, Lake(root=str(settings.lake))
    versions = lake.versions(sorted([*datasets] or EVERY))
    contracts = {dataset: carried(EVERY[dataset], lake.table(dataset)) for dataset in versions}
    for dataset, version in versions.items():
        for part in lake.parts(dataset, version):
            stored = of_delta(json.loads(part.table.schema().to_json()))
            transformation_replicator.require_classified(contracts[dataset], stored)
    for made in (copies, *{_place(folder, dataset).parent for dataset in versions}):
        made.mkdir(parents=True, exist_ok=True)
        _give(made, group)
    _give(folder, group)
    written = {}
    with spark() as session:
        offer_masks(session, settings, transformation_replicator.PURPOSE)
        for dataset, version in versions.items():
            contract = contracts[dataset]

            def write(target: Path, contract: Contract = contract, version: int = version) -> None:
                rows = transformation_replicator.transformed(lake.read(session, contract.dataset, version), contract)
                by = [column for column in rows.columns if column == contract.partition_column]
                rows.write.format("delta").partitionBy(*by).save(target.as_uri())
                for path in (target, *target.rglob("*")):
                    _give(path, group)

            name = _name(settings, lake, contract, version)
            written[dataset] = not (copies / name).exists()
            files.appear(copies, name, write)
            link = copies / f".{uuid4()}"
            link.symlink_to(Path("..", _COPIES, name))
            link.replace(_place(folder, dataset))
    links = (_place(folder, dataset) for dataset in EVERY)
    files.remove_others(copies, keep=[link.readlink().name for link in links if link.is_symlink()])
    return written


def alone(settings: Settings) -> AbstractContextManager[None]:
    """Be the only process that writes or removes copies; others wait."""
    return files.locked(settings.home / ".staging.lock")


def remove(settings: Settings) -> None:
    """Remove all copies; the next run of the job makes them anew."""
    if settings.staging is not None:
        with alone(settings):
            files.remove_others(settings.staging.folder / _COPIES, keep=())


def _folder(settings: Settings) -> tuple[Path, int]:
    """Return the folder of the second lake, and the number of the group that reads it."""
    where = str(settings.home / "blogdata.toml")
    if settings.staging is None:
        step = "write [staging] with folder and group into it: a run cannot choose where copies go"
        raise ConfigurationError(what="no folder is named for staging", where=where, next_step=step)
    folder = settings.staging.folder
    own = [place.resolve() for place in (settings.home, settings.landing, settings.lake)]
    within = any(folder.is_relative_to(place) or place.is_relative_to(folder) for place in own)
    made = (folder / _COPIES).is_dir() or not folder.exists() or not any(folder.iterdir())
    if within or not made or (folder.exists() and folder.stat().st_uid != os.geteuid()):
        what = "the folder for staging is a part of the deployment, belongs to another user or has other files"
        raise ConfigurationError(what=what, where=str(folder), next_step=f"name a new folder in {where}")
    try:
        return folder, getgrnam(settings.staging.group).gr_gid
    except KeyError as error:
        what = f"this machine has no group {settings.staging.group}"
        raise ConfigurationError(what=what, where=where, next_step="make it, or name another") from error


def _name(settings: Settings, lake: Lake, contract: Contract, version: int) -> str:
    """Name a copy after the table, its version, what staging gets of it, and the key of the masks."""
    source = lake.table(contract.dataset)
    assert source is not None
    key = pseudo_anonymizer.derived_key(secrets.read(settings, SECRET).reveal(), "mark").hex()
    seen = f"{transformation_replicator.sight_of(contract)!r}{key}"
    digest = hashlib.sha256(seen.encode()).hexdigest()
    return f"{contract.dataset}-{version}-{str(source.metadata().id)[:8]}-{digest[:8]}"


def _place(folder: Path, dataset: str) -> Path:
    return folder / dataset.replace(".", "/", 1)


def _give(path: Path, group: int) -> None:
    os.chown(path, -1, group)
    path.chmod(0o750 if path.is_dir() else 0o640)


def _replicate(context: dg.OpExecutionContext, config: ReplicateConfig) -> Mapping[str, Any]:
    settings: Settings = context.resources.deployment.settings()
    refuse_unknown(config.datasets, EVERY, where="replicate")
    with alone(settings):
        written = replicate(settings, config.datasets, context.resources.spark.guard)
    rows = [{"dataset": dataset, "written": is_new} for dataset, is_new in written.items()]
    return {"written": sum(written.values()), **table("copies", rows)}


job = operation(
    "replicate",
    ReplicateConfig,
    _replicate,
    description="Copy the tables into a second lake, for staging, without values of persons; what has not changed, "
    "stays",
)
