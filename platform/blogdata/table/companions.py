"""Companion tables: their rows are published by the commits of a main table, whose log they follow.

A commit of the main table lists the files of its companions, which were written and audited before. The first reader
that opens a companion afterwards brings its log up to date. Each commit of a companion has a Delta transaction
identifier, the main table and the version it followed, so that none is applied twice or skipped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from deltalake import DeltaTable

from blogdata.contract.publication import parse, parse_expiry
from blogdata.errors import DiskFull, PlatformError
from blogdata.errors.remedies import Remedy, Run
from blogdata.table.actions import DataFile
from blogdata.table.committer import Mark, OpenCommit, Whole
from blogdata.table.faults import TRIES, ConcurrentWrite, StoreNotWritable, contended, typed_errors
from blogdata.table.store import Store

APPEARS_WITH = "blogdata.appears_with"
"""Table property: the dataset whose commits this table follows."""
FOLLOWED = "followed"


def main_of(table: DeltaTable) -> str | None:
    return table.metadata().configuration.get(APPEARS_WITH)


def caught_up(store: Store, dataset: str) -> DeltaTable | None:
    """Open a table; a companion first follows its main table. None if it does not exist."""
    table = store.table(dataset)
    return None if table is None else follow(store, dataset, table)


def follow(store: Store, dataset: str, table: DeltaTable) -> DeltaTable:
    """Apply the pending commits of the main table to its companion's log, if the store takes writes."""
    main = main_of(table)
    leader = None if main is None else store.table(main)
    if main is None or leader is None:
        return table
    for _ in range(TRIES):
        pending = _pending(store, leader, main, dataset, _followed(table, main))
        if not pending:
            return table
        try:
            for version, held in pending:
                table = _commit(store, dataset, main, version, held)
        except (StoreNotWritable, DiskFull):
            return table
        except ConcurrentWrite:
            # Another process followed meanwhile: read again which commits are pending.
            table = DeltaTable(table.table_uri, storage_options=dict(store.storage_options))
    raise contended(dataset, f"follow {main}")


def followed(store: Store, dataset: str) -> int:
    """Return the version of its main table that a companion has followed last; -1 before the first one."""
    table = caught_up(store, dataset)
    main = None if table is None else main_of(table)
    return -1 if table is None or main is None else _followed(table, main)


def version_with(store: Store, dataset: str, version: int) -> int:
    """Find the newest version of a companion that contains no later commit of its main table than a version."""
    table = caught_up(store, dataset)
    assert table is not None
    main = main_of(table)
    if main is None or _followed(table, main) <= version:
        return table.version()
    history = list(store.commits(table))[::-1]
    chosen = history[0][0]
    for following, commit in history:
        info = _info_of(commit)
        if info is not None and info.get(FOLLOWED, {}).get("version", -1) > version:
            break
        chosen = following
    return chosen


def agreeing(store: Store, datasets: Sequence[str]) -> dict[str, int]:
    """Compute the versions at which a main table and its companions show the same state; of any other the newest.

    A main table that a companion cannot follow, in a store that takes no writes, gets the version that it has followed.
    """
    tables = {dataset: table for dataset in datasets if (table := caught_up(store, dataset)) is not None}
    versions = {dataset: table.version() for dataset, table in tables.items()}
    together = {dataset: main for dataset, table in tables.items() if (main := main_of(table)) in versions}
    for dataset, main in together.items():
        for version, _ in _pending(store, tables[main], main, dataset, _followed(tables[dataset], main))[:1]:
            versions[main] = min(versions[main], version - 1)
    for dataset, main in together.items():
        versions[dataset] = version_with(store, dataset, versions[main])
    return versions


def _followed(table: DeltaTable, main: str) -> int:
    version = table.transaction_version(main)
    return -1 if version is None else version


def _info_of(commit: Mapping[str, Any]) -> dict[str, Any] | None:
    metadata = commit.get("userMetadata")
    return parse(metadata) or parse_expiry(metadata)


def _pending(
    store: Store, leader: DeltaTable, main: str, dataset: str, after: int
) -> list[tuple[int, Mapping[str, Any]]]:
    behind = leader.version() - after
    if behind <= 0:
        return []
    commits = list(store.commits(leader, after))
    if after >= 0 and len(commits) < behind:
        raise PlatformError(
            what=f"{main} has no commits between versions {after} and {leader.version()} any more",
            where=dataset,
            next_step=Remedy(f"bring them back from a backup, or move the folder of {main} away and run: ", Run()),
        )
    infos = [(version, _info_of(commit) or {}) for version, commit in reversed(commits)]
    held = [(version, info.get("companions", {}).get(dataset)) for version, info in infos]
    return [(version, content) for version, content in held if content is not None]


def _commit(store: Store, dataset: str, main: str, version: int, held: Mapping[str, Any]) -> DeltaTable:
    # If the identifier expired, the companion would apply every commit again.
    begun = OpenCommit(store, dataset, Mark(writer=main, batch=version, lasts=True))
    if not begun.repeated:
        inputs = {**held["info"]["inputs"], main: version}
        info = {**held["info"], "inputs": inputs, FOLLOWED: {"dataset": main, "version": version}}
        partitions = held["partitions"] if info["partition_column"] else Whole.TABLE
        begun.replace(partitions, list(map(DataFile.of, held["added"])), info)
        with typed_errors(dataset):
            begun.table.update_incremental()
    return begun.table
