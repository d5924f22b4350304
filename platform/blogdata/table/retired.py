"""Removes members that are no longer visible, once no reader can still use them.

The pointer marks a member as removed before its files are deleted: a reader of an old version gets a clear error, and
the next removal finishes one that died halfway. Files of a run that died before its member became visible go, too.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

from blogdata.errors import ConfigurationError
from blogdata.table import members, shares
from blogdata.table.lake import Lake
from blogdata.table.members import Member, Members
from blogdata.table.store_faults import TRIES, contended

ABANDONED = timedelta(days=7)
"""Age at which a member that was never visible counts as abandoned: no run takes so long."""


@dataclass(frozen=True, kw_only=True)
class Removed:
    """A member whose files are gone, the rows that readers saw of it, and until when (UTC); None: never."""

    location: str
    rows: int
    visible_until: datetime | None
    bytes: int


def remove(lake: Lake, dataset: str, *, keep: timedelta, now: datetime | None = None) -> Sequence[Removed]:
    """Remove the members that have been replaced for longer than `keep`, and abandoned ones that never were visible.

    Never one that is visible, or shared by a manifest.
    """
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
        return []
    named = {member.location: member for member in state.all}
    kept = {member.location for member in state.all if member.removed_at is None}
    removed = []
    for folder in sorted(home.iterdir()):
        if folder.name in kept or (folder.name not in named and not _is_abandoned(folder, moment)):
            continue
        size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        shutil.rmtree(folder)
        last = named.get(folder.name)
        until = last.visible_until if last else None
        removed.append(Removed(location=folder.name, rows=last.rows if last else 0, visible_until=until, bytes=size))
    return removed


def _noted(lake: Lake, dataset: str, moment: datetime, keep: timedelta) -> Members | None:
    for _ in range(TRIES):
        state = members.seen(lake, dataset)
        if state.version < 0:
            return None
        shared = {part for file in shares.shared_files(lake, dataset) for part in file.parts}
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
