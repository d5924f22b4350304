"""`blogdata replicate`: the tables in a second lake, for staging, without a value that leads to a person."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from blogdata.cli import copies
from blogdata.cli.output import NOTHING_PUBLISHED, TextGrid, console, existing, say_json
from blogdata.cli.role_sight import mark_of, offer_masks
from blogdata.cli.sql_command import session
from blogdata.errors import ConfigurationError, refuse_unknown
from blogdata.lake.lake import Lake
from blogdata.patterns.ingestion import replicated_tables
from blogdata.patterns.ingestion.replicated_tables import SourceMoved
from blogdata.patterns.security import role_folders, transformation_replicator
from blogdata.publish.column_types import of_delta
from blogdata.publish.contract import Contract
from blogdata.publish.migrations import carried
from blogdata.services import exports
from blogdata.services.config import Settings
from quality.contracts import EVERY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

READER = "staging"
"""Who reads the copies, beside the roles."""
AS_IT_IS, TRANSFORMED = "byte for byte", "transformed"
_ATTEMPTS = 3


def replicate(
    folder: Annotated[Path | None, typer.Argument(help="Root of staging's lake, outside of the home")] = None,
    group: Annotated[str | None, typer.Option(help="Group of the machine's users that may read it")] = None,
    dataset: Annotated[list[str] | None, typer.Option(help="Only this dataset; may be given again")] = None,
    withdraw: Annotated[bool, typer.Option("--withdraw", help="Remove the copies from the folder")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON")] = False,
) -> None:
    """Copy the tables into a second lake, for staging, without values of persons; what has not changed, stays."""
    settings = existing()
    refuse_unknown(dataset or [], EVERY, where="replicate")
    with exports.alone(settings):
        chosen = copies.chosen(settings, READER, folder, group, command="blogdata replicate")
        if withdraw:
            console.print(f"withdrawn: {copies.withdraw(settings, chosen):,} files of {chosen.folder}")
            return
        number = copies.number_of(chosen.group)
        lake = Lake(root=str(settings.lake))
        contracts = _contracts(lake, dataset or [*EVERY])
        exports.remember(settings, chosen)
        for name in role_folders.datasets(chosen.folder) - EVERY.keys():
            role_folders.remove(chosen.folder, name)
        with ExitStack() as opened:
            target = _Target(chosen.folder, number, lake, _spark(settings, opened), mark_of(settings))
            found = {name: target.replicated(contract) for name, contract in contracts.items()}
    if as_json:
        say_json([{"dataset": name, "how": how, "written": is_new} for name, (how, is_new) in found.items()])
        return
    table = TextGrid()
    for title in ("dataset", "how", "copy"):
        table.add_column(title)
    for name, (how, is_new) in found.items():
        table.add_row(name, how, "written" if is_new else "as before")
    console.print(table)
    console.print(f"{chosen.folder}: a lake that may be read by {chosen.group}; use it with BLOGDATA_LAKE")


def _spark(settings: Settings, opened: ExitStack) -> Callable[[], SparkSession]:
    """Open a session with the masks once somebody asks for it: copies of bytes need none."""
    found: list[SparkSession] = []

    def spark() -> SparkSession:
        if not found:
            found.append(opened.enter_context(session(settings)))
            offer_masks(found[0], settings, transformation_replicator.PURPOSE)
        return found[0]

    return spark


def _contracts(lake: Lake, names: list[str]) -> Mapping[str, Contract]:
    """Find the datasets that have a table, and refuse columns of which nobody has said whom they identify."""
    versions = lake.versions(sorted(names))
    if not versions:
        raise ConfigurationError(what="there are no tables yet", where=lake.root, next_step=NOTHING_PUBLISHED)
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
            try:
                return self._newest(contract)
            except SourceMoved:
                # A newer version is there by now.
                continue
        return self._newest(contract)

    def _newest(self, contract: Contract) -> tuple[str, bool]:
        name = contract.dataset
        (version,) = self._lake.versions([name]).values()
        # It may be newer than the one that was looked at before.
        _require_classified(self._lake, contract, version)
        is_copied = not transformation_replicator.leads_to_persons(contract)
        is_copied = is_copied and replicated_tables.is_whole_in_files(self._lake, name)
        seen = AS_IT_IS if is_copied else self._seen(contract)
        copy = role_folders.named(self._lake, name, version, seen)
        write = self._copied if is_copied else self._transformed
        is_new = role_folders.write(self._folder, name, copy, self._group, partial(write, contract, version, copy))
        role_folders.show_as_lake(self._folder, name, self._group)
        return AS_IT_IS if is_copied else TRANSFORMED, is_new

    def _seen(self, contract: Contract) -> str:
        sight = transformation_replicator.sight_of(contract)
        assert sight is not None
        return role_folders.rights_of(sight, self._mark)

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
