"""Fast Metadata Cleaner: a period is a table of its own behind one view; to replace it is one operation on metadata.

Problem: a job deletes the rows of its last run before it writes them again. To find them it reads and rewrites files of
a table that grows every day, so the job takes longer every day.

How it works: the rows of each period are a table of their own, a member; the dataset is the union of the members that
its pointer names. To replace a period, its new rows are written to a new member and audited; then one commit of the
pointer swaps it for the old member (:func:`replace_periods`). No file of any other period is opened. The old member is
kept until no reader can still use it (`blogdata.table.expiry`). Rows that a period lacks are added to its member, and
the pointer then names the newer version of that (`blogdata.contract.writes.Slices`). :func:`freeze` turns the final
periods of a past year into one immutable member: every store limits the number of tables, and a view over many of them
is slow.

The trap: dropping the table before the view stops naming it. Readers fail in between, and a crash there leaves a view
of a missing table; so the pointer moves first. Another trap is granularity: a period is the smallest unit that can be
replaced, not a day or a customer within it.

When not to use it: for rows that are corrected one by one (Merger), and on stores without cheap metadata (Data
Overwrite). An added column is null in periods written before; replay them if they need values.

Source: Data Engineering Design Patterns, ch. 4.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from blogdata.contract.contract import Contract
from blogdata.contract.partitions import following
from blogdata.contract.publication import WHOLE_TABLE, Account, Commit, Entry, entries_of
from blogdata.contract.writes import ByPeriod
from blogdata.errors import PlatformError
from blogdata.errors.remedies import Remedy, Run
from blogdata.ledger.events import EventLog
from blogdata.patterns.idempotency.data_overwrite import overwrite_partitions, overwrite_table
from blogdata.table import members
from blogdata.table.audit import FROZEN
from blogdata.table.committer import ConcurrentWrite
from blogdata.table.incompatibilities import hold_member
from blogdata.table.lake import Lake
from blogdata.table.members import CLOSED, Member, Members
from blogdata.table.publish import commit_id_of, committed, receipt
from blogdata.table.store_faults import TRIES
from blogdata.table.target import Additions, Provenance, Target

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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


_YEAR = len("2026")


def replace_periods(
    frame: DataFrame, target: Target, partitions: Sequence[str], provenance: Provenance, *, thaw: bool = False
) -> Commit:
    """Replace some periods: one audited member per period, and one commit that makes all of them visible."""
    keys, added = tuple(sorted(set(partitions))), provenance.additions
    column = target.contract.partition_column
    assert column is not None, "use the Proxy for a dataset that is written whole"
    assert keys, "name at least one period"
    seen = members.seen(target.lake, target.contract.dataset)
    if added.of and seen.version != added.at:
        raise published_meanwhile(target.contract.dataset)
    if not thaw:
        # One that the event log does not know is computed again, from what has landed.
        published = EventLog(target.lake).publications(target.contract.dataset, keys)
        _refuse_frozen(seen, tuple(published), target.contract)
    new = [
        NewMember(name=key, frame=rows, partitions=(key,), onto=seen.covering([key])[0] if key in added.of else None)
        for key, rows in zip(keys, _split(frame, column, keys), strict=True)
    ]
    return publish_members(new, target, provenance, planned_from=seen)


def extensible(lake: Lake, dataset: str, keys: Collection[str]) -> Mapping[str, Member]:
    """Find the periods to whose member rows can be added: not frozen, and nobody has written to it since."""
    return {
        member.partitions[0]: member
        for member in members.seen(lake, dataset).covering(keys)
        if not member.frozen and len(member.partitions) == 1
        if lake.version(members.table_of(dataset, member.location)) == member.version
    }


def freezable(seen: Members, *, final_before: str) -> Mapping[str, tuple[Member, ...]]:
    """Find the members that can be frozen, by year: those of years in which no period can change any more."""
    years: dict[str, list[Member]] = {}
    for member in seen.visible:
        year = member.partitions[0][:_YEAR]
        if not member.frozen and year < final_before[:_YEAR]:
            years.setdefault(year, []).append(member)
    return {year: tuple(found) for year, found in sorted(years.items()) if len(found) > 1}


def freeze(
    spark: SparkSession, target: Target, *, final_before: str, arrange: Arrange | None = None
) -> Sequence[Member]:
    """Turn the periods of each final year into one immutable member, and return these members.

    A year with a period that the event log does not know is skipped: it is computed again first.
    """
    dataset = target.contract.dataset
    columns = {column.name: column.type for column in target.contract.columns}
    buckets, events = target.contract.buckets, EventLog(target.lake)
    frozen = []
    for year in freezable(members.seen(target.lake, dataset), final_before=final_before):
        # Read again for each year: the swap of the previous year has moved the pointer.
        seen = members.seen(target.lake, dataset)
        chosen = freezable(seen, final_before=final_before).get(year, ())
        if not chosen:
            continue
        keys = tuple(sorted(key for member in chosen for key in member.partitions))
        published = events.publications(dataset, keys)
        if not published.keys() >= set(keys):
            # The rest is stale: the rows of its members must not become final.
            continue
        for member in chosen:
            hold_member(member.columns, target.contract, where=f"{dataset}, member {member.name}")
        provenance = Provenance(
            inputs={dataset: seen.version},
            accounts={key: _account(published[key], target.contract) for key in keys},
            expected={key: {"rows": count} for member in chosen for key, count in member.rows_of.items()},
        )
        bucketed = buckets is not None and all(buckets.column in member.columns for member in chosen)
        # Rows that are older than the column have no bucket, so their table must not state any.
        mine = replace(target, contract=replace(target.contract, buckets=buckets if bucketed else None))
        name = _free(year, seen)
        rows = target.lake.read_members(spark, dataset, chosen, columns)
        new = NewMember(name=name, frame=rows, partitions=keys, frozen=True, arrange=arrange)
        filled = fill(new, mine, provenance)
        once = f"{dataset}/freeze {name}/{target.run.run_id}"
        # Without measures the commit does not count as a publication: no row of the dataset has changed.
        info = {"commit_id": once, "frozen": list(keys), "run_id": target.run.run_id, "member": filled.location}
        swap([filled], target, info, planned_from=seen, transaction_id=once)
        frozen.append(name)
    return [member for member in visible(target.lake, dataset) if member.name in frozen]


def _refuse_frozen(seen: Members, keys: Sequence[str], contract: Contract) -> None:
    found = sorted((key, member.name) for member in seen.covering(keys) if member.frozen for key in member.partitions)
    frozen = [(key, name) for key, name in found if key in keys]
    if frozen:
        key, name = frozen[0]
        assert contract.grain is not None
        fault = PlatformError(
            what=f"{key} is frozen, it is part of the immutable member {name}"
            + (f"; and so are {len(frozen) - 1} more" if len(frozen) > 1 else ""),
            where=contract.dataset,
            next_step=Remedy(
                "leave it: rows that came too late are counted; if it must be put right: ",
                Run(start=key, end=following(key, contract.grain), datasets=(contract.dataset,), accept=FROZEN),
            ),
        )
        fault.partitions = frozenset(key for key, _ in frozen)
        raise fault


def _split(frame: DataFrame, column: str, keys: Sequence[str]) -> list[DataFrame]:
    from pyspark.sql import functions as F

    # Rows of other periods go with the last one, whose audits refuse them; a filter would drop them silently.
    others = F.coalesce(F.col(column).isin(*keys[:-1]), F.lit(False))
    return [*[frame.where(F.col(column) == key) for key in keys[:-1]], frame.where(~others) if keys[1:] else frame]


def _account(entry: Entry, contract: Contract) -> Account:
    stated = {reason: rows for reason, rows in entry.reasons.items() if reason not in contract.reasons}
    return Account(rows_in=entry.rows_in, reasons=stated)


def _free(year: str, seen: Members) -> str:
    taken = {member.name for member in seen.visible}
    return next(name for name in (year, *(f"{year}-{number}" for number in range(2, 1000))) if name not in taken)


def visible(lake: Lake, dataset: str) -> Sequence[Member]:
    """List the members whose union is the dataset now, in the order of their periods."""
    return sorted(members.seen(lake, dataset).visible, key=lambda member: member.partitions)
