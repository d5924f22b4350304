"""Partitions leave a table when their retention has ended, and members when no reader can still use them.

A partition leaves by one commit that names it with its rows, without a JVM: it removes whole files. The event log and
the companions of the table follow it by its metadata. If another commit changed these partitions first, it is computed
again: the rows that it counts are those that it removes. The files stay for readers of earlier versions until a vacuum.

The pointer marks a member as removed before its files are deleted: a reader of an old version gets a clear error, and
the next removal finishes one that died halfway. Files of a run that died before its member became visible go, too.
"""

from __future__ import annotations

import random
import shutil
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from blogdata.contract.publication import EXPIRED
from blogdata.errors import ConfigurationError
from blogdata.table import manifest, members
from blogdata.table.committer import Mark, OpenCommit
from blogdata.table.faults import TRIES, ConcurrentWrite, contended
from blogdata.table.lake import Lake
from blogdata.table.members import Member, Members

ABANDONED = timedelta(days=7)
"""Age at which a member that was never visible counts as abandoned: no run takes so long."""


def leave(
    lake: Lake,
    dataset: str,
    column: str,
    partitions: Sequence[str],
    *,
    run: Mapping[str, Any],
    companions: Sequence[str] = (),
) -> Mapping[str, int]:
    """Take partitions out of a table and its companions, in one commit of the table; return the rows that left."""
    keys = sorted(partitions)
    for _ in range(TRIES):
        begun = OpenCommit(lake, dataset, Mark(writer=f"{EXPIRED}/{uuid.uuid4()}", batch=1))
        rows = rows_of(lake, dataset, column, keys, begun.table.version())
        beside = {name: _info(column, rows_of(lake, name, column, keys), run) for name in companions}
        held = {name: {"info": info, "added": [], "partitions": keys} for name, info in beside.items()}
        info = {**_info(column, rows, run), "companions": held}
        if members.is_pointer(begun.table):
            state = members.members_of(begun.table)
            left = state.superseded(keys, state.version + 1, datetime.now(timezone.utc))
            if members.commit(lake, dataset, state, left, info) is not None:
                return rows
        else:
            # Of another change to the same partitions, the rows are counted again.
            with suppress(ConcurrentWrite):
                begun.replace(keys, [], info)
                return rows
        time.sleep(random.uniform(0.005, 0.05))
    raise contended(dataset, "take partitions out")


def _info(column: str, rows: Mapping[str, int], run: Mapping[str, Any]) -> dict[str, Any]:
    commit_id = f"{EXPIRED}/{uuid.uuid4()}"
    return {"commit_id": commit_id, EXPIRED: dict(rows), "partition_column": column, "inputs": {}, "run": dict(run)}


def rows_of(
    lake: Lake, dataset: str, column: str, keys: Sequence[str], version: int | None = None
) -> Mapping[str, int]:
    """Count the rows of some partitions of a table, from its log; 0 for one that is not there."""
    counts = lake.row_counts(dataset, column, version, partitions=keys)
    return {key: counts.get(key, 0) for key in keys}


def remove(lake: Lake, dataset: str, *, keep: timedelta, now: datetime | None = None) -> dict[str, int]:
    """Remove members that no reader needs, and abandoned ones; return the bytes of their files by location."""
    home = lake.folder(members.table_of(dataset, ""))
    if home is None:
        raise ConfigurationError(
            what="members in an object store are removed by the store, which may hold a lock on them",
            where=lake.path(members.table_of(dataset, "")),
            next_step="give the folder a lifecycle rule",
        )
    moment = now or datetime.now(timezone.utc)
    state = _noted(lake, dataset, moment, keep)
    if state is None or not home.is_dir():
        return {}
    named = {member.location for member in state.all}
    kept = {member.location for member in state.all if member.removed_at is None}
    removed = {}
    for folder in sorted(home.iterdir()):
        if folder.name in kept or (folder.name not in named and not _is_abandoned(folder, moment)):
            continue
        removed[folder.name] = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        shutil.rmtree(folder)
    return removed


def _noted(lake: Lake, dataset: str, moment: datetime, keep: timedelta) -> Members | None:
    for _ in range(TRIES):
        state = members.seen(lake, dataset)
        if state.version < 0:
            return None
        shared = {part for file in manifest.shared_files(lake, dataset) for part in file.parts}
        past = _past(state.all, moment - keep) - shared
        if not past:
            return state
        rows = tuple(replace(member, removed_at=moment) if member.location in past else member for member in state.all)
        info = {"commit_id": f"{dataset}/removal/{moment.isoformat()}", "removed": sorted(past)}
        version = members.commit(lake, dataset, state, rows, info)
        if version is not None:
            return Members(version=version, all=rows)
    raise contended(dataset, "remove members")


def _past(rows: Sequence[Member], before: datetime) -> set[str]:
    # A location can have several rows: a frozen member that lost a partition stays visible with the others.
    needed = {row.location for row in rows if row.visible_until is None or row.visible_until >= before}
    return {row.location for row in rows if row.removed_at is None} - needed


def _is_abandoned(folder: Path, now: datetime) -> bool:
    newest = max((file.stat().st_mtime for file in folder.rglob("*")), default=folder.stat().st_mtime)
    return datetime.fromtimestamp(newest, tz=timezone.utc) < now - ABANDONED
