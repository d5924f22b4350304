"""Fills and audits new members of a dataset, then makes them visible with one commit of the dataset's pointer.

Members are written by Audit-Write-Audit-Publish, like every table. A complete member is closed, unless its periods may
be written in slices and it is not frozen: Delta refuses to change it, and its files lose their write permission if the
store has permissions. A run that dies before the pointer names its member leaves an invisible table, or an invisible
version. A rerun with the same inputs reuses that table; with other inputs it writes a new one.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from blogdata.lake import members
from blogdata.lake.commit import WHOLE_TABLE, Commit, entries_of
from blogdata.lake.committer import ConcurrentWrite
from blogdata.lake.lake import Lake
from blogdata.lake.members import CLOSED, Member, Members
from blogdata.lake.store_faults import TRIES
from blogdata.patterns.idempotency.data_overwrite import overwrite_partitions, overwrite_table
from blogdata.publish.contract import Contract
from blogdata.publish.incompatibilities import hold_member
from blogdata.publish.publish import commit_id_of, committed, receipt
from blogdata.publish.target import Additions, Provenance, Target
from blogdata.publish.writes import ByPeriod

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Arrange = Callable[[Target, int], int]
"""Rewrites files of a table, given its newest version; returns the version that has the same rows in other files."""


@dataclass(frozen=True, kw_only=True)
class NewMember:
    name: str
    frame: DataFrame
    partitions: tuple[str, ...] = ()
    frozen: bool = False
    arrange: Arrange | None = None
    onto: Member | None = None
    """The visible member to whose rows it only adds; None: its rows are all of its partitions."""


@dataclass(frozen=True, kw_only=True)
class Filled:
    """A complete member that is not visible yet."""

    new: NewMember
    location: str
    commit: Commit
    version: int


def publish_members(
    new: Sequence[NewMember], target: Target, provenance: Provenance, *, planned_from: Members
) -> Commit:
    """Fill members and make all of them visible in one commit, once per run."""
    lake, dataset = target.lake, target.contract.dataset
    commit_id = commit_id_of(target, [key for one in new for key in one.partitions])
    table = lake.caught_up(dataset)
    if table is not None and table.transaction_version(commit_id) is not None:
        return replace(receipt(lake, dataset, commit_id, None), repeated=True)
    partitions = keys_of(new)
    for member in planned_from.visible:
        if not partitions.issuperset(member.partitions):
            hold_member(member.columns, target.contract, where=f"{dataset}, member {member.name}")
    filled = [fill(one, target, provenance) for one in new]
    info = {
        **_united([one.commit.info for one in filled]),
        "dataset": dataset,
        "contract": target.contract.fingerprint,
        "commit_id": commit_id,
        "members": {one.new.name: one.location for one in filled},
    }
    version = swap(filled, target, info, planned_from=planned_from, transaction_id=commit_id)
    return Commit(dataset=dataset, version=version, entries=entries_of(dataset, version, info), info=info)


def fill(new: NewMember, target: Target, provenance: Provenance) -> Filled:
    """Write and audit a member, arrange its files, and close it; it is not visible yet."""
    mine = _of(provenance, new.partitions or (WHOLE_TABLE,), new.onto)
    location = new.onto.location if new.onto else f"{new.name}-{_digest(commit_id_of(target, new.partitions), mine)}"
    table = members.table_of(target.contract.dataset, location)
    inner = replace(target, contract=replace(target.contract, dataset=table))
    commit = committed(target.lake, table, commit_id_of(inner, new.partitions))
    if commit is None:
        commit = (
            overwrite_partitions(new.frame, inner, new.partitions, mine)
            if new.partitions
            else overwrite_table(new.frame, inner, mine)
        )
    version = new.arrange(inner, commit.version) if new.arrange else commit.version
    write = target.contract.write
    if new.frozen or not (isinstance(write, ByPeriod) and write.slices):
        _close(target.lake, table)
    return Filled(new=new, location=location, commit=commit, version=version)


def swap(
    filled: Sequence[Filled], target: Target, info: dict[str, Any], *, planned_from: Members, transaction_id: str
) -> int:
    """Replace the visible members of the same partitions by new ones, in one commit."""
    lake, contract = target.lake, target.contract
    partitions = keys_of([one.new for one in filled])
    base = planned_from
    for _ in range(TRIES):
        if _places(base, partitions) != _places(planned_from, partitions):
            break
        version, moment = base.version + 1, datetime.now(timezone.utc)
        rows = [
            *base.superseded(partitions, version, moment),
            *[_member(one, contract, target, version, moment) for one in filled],
        ]
        if members.commit(lake, contract.dataset, base, rows, info, transaction_id=transaction_id) is not None:
            return version
        # Another run committed first. If it wrote other partitions, its commit is kept and this one follows it.
        time.sleep(random.uniform(0.005, 0.05))
        base = members.seen(lake, contract.dataset)
    raise published_meanwhile(contract.dataset)


def published_meanwhile(dataset: str) -> ConcurrentWrite:
    return ConcurrentWrite(
        what="another run published the same partitions while this one was writing",
        where=dataset,
        next_step="nothing of this run was published; it is retried, or run it again",
    )


def keys_of(new: Sequence[NewMember]) -> frozenset[str]:
    return frozenset(key for one in new for key in one.partitions or (WHOLE_TABLE,))


def _places(state: Members, partitions: frozenset[str]) -> set[tuple[str, int, tuple[str, ...]]]:
    return {(member.location, member.version, member.partitions) for member in state.covering(partitions)}


def _member(one: Filled, contract: Contract, target: Target, version: int, moment: datetime) -> Member:
    return Member(
        name=one.new.name,
        location=one.location,
        version=one.version,
        partition_column=contract.partition_column,
        columns={column.name: column.type for column in contract.columns},
        frozen=one.new.frozen,
        rows_of={key: entry.rows_out for key, entry in one.commit.entries.items()},
        run_id=target.run.run_id,
        since_version=version,
        visible_from=moment,
    )


def _digest(commit_id: str, provenance: Provenance) -> str:
    # A retry with the same inputs reuses its table; with other inputs it must not publish the earlier result.
    text = json.dumps([commit_id, asdict(provenance)], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def _of(provenance: Provenance, partitions: Sequence[str], onto: Member | None) -> Provenance:
    def mine(given: Mapping[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in given.items() if key in partitions}

    return replace(
        provenance,
        additions=Additions(at=onto.version, of=mine(provenance.additions.of)) if onto else Additions(),
        accounts=mine(provenance.accounts),
        expected=mine(provenance.expected),
        files=mine(provenance.files),
        landed=mine(provenance.landed),
    )


def _close(lake: Lake, table: str) -> None:
    found = lake.caught_up(table)
    assert found is not None
    if found.metadata().configuration.get(CLOSED) != "true":
        found.alter.set_table_properties({CLOSED: "true"})
    folder = lake.folder(table)
    if folder is None:
        return
    for file in folder.rglob("*"):
        # Only the owner of a file (or root) can change its mode: a Spark server may run as another user.
        if file.is_file() and os.geteuid() in (0, file.stat().st_uid):
            file.chmod(file.stat().st_mode & ~0o222)


def _united(infos: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    united = dict(infos[0])
    for name in ("measures", "accounts", "landed", "added"):
        united[name] = {key: value for info in infos for key, value in info.get(name, {}).items()}
    united["breakdowns"] = {
        name: [row for info in infos for row in info["breakdowns"][name]] for name in infos[0]["breakdowns"]
    }
    for name in ("files", "bytes"):
        united[name] = sum(int(info[name]) for info in infos)
    united["started_at"] = min(float(info["started_at"]) for info in infos)
    return united
