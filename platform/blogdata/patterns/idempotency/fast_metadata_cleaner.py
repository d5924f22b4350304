"""Fast Metadata Cleaner: a period is a table of its own behind one view; to replace it is one operation on metadata.

Problem: a job deletes the rows of its last run before it writes them again. To find them it rewrites files of a table
that grows every day, so the job takes longer every day.
How it works: the rows of each period are a table of their own, a member; the dataset is the union of the members that
its pointer names. New rows of a period are written to a new member and audited; then one commit of the pointer swaps it
for the old one (:func:`replace_periods`). No file of any other period is opened. The old member is kept until no reader
can still use it (`blogdata.table.expiry`). Rows that a period lacks are added to its member, and the pointer then
names the newer version (`blogdata.contract.writes.Slices`). :func:`freeze` turns the final periods of a past year into
one immutable member, as a view over many tables is slow.
The trap: dropping the table before the view stops naming it: readers fail in between, and a crash there leaves a view
of a missing table. Another trap is granularity: a period is the smallest unit that can be replaced, not a day or a
customer within it.
When not to use it: for rows that are corrected one by one (Merger), and on stores without cheap metadata (Data
Overwrite). An added column is null in periods written before; replay them if they need values.
Source: "Data Engineering Design Patterns", ch. 4.
"""

from __future__ import annotations

import hashlib
import json
import random
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from blogdata.contract.contract import Contract
from blogdata.contract.partitions import following
from blogdata.contract.publication import WHOLE_TABLE, Account, Commit, entries_of
from blogdata.contract.writes import ByPeriod
from blogdata.errors import PlatformError
from blogdata.errors.remedies import Remedy, Run
from blogdata.ledger.events import EventLog
from blogdata.patterns.idempotency.data_overwrite import overwrite_partitions, overwrite_table
from blogdata.table import members
from blogdata.table.audit import FROZEN
from blogdata.table.faults import TRIES, ConcurrentWrite
from blogdata.table.incompatibilities import hold_member
from blogdata.table.lake import Lake
from blogdata.table.members import CLOSED, Member, Members
from blogdata.table.publish import commit_id_of, committed, receipt
from blogdata.table.target import Additions, Provenance, Target

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


Arrange = Callable[[Target, int], int]
"""Rewrites files of a table, given its newest version; returns the version that has the same rows in other files."""
_YEAR = len("2026")


@dataclass(frozen=True, kw_only=True)
class NewMember:
    name: str
    frame: DataFrame
    partitions: tuple[str, ...] = ()
    frozen: bool = False
    arrange: Arrange | None = None
    onto: Member | None = None
    """The visible member to whose rows it only adds; None: its rows are all of its partitions."""


def publish_members(
    new: Sequence[NewMember], target: Target, provenance: Provenance, *, planned_from: Members
) -> Commit:
    """Fill members and make all of them visible in one commit, once per run."""
    lake, dataset = target.lake, target.contract.dataset
    keys = [key for member in new for key in member.partitions]
    commit_id = commit_id_of(target, keys)
    table = lake.caught_up(dataset)
    if table is not None and table.transaction_version(commit_id) is not None:
        return replace(receipt(lake, dataset, commit_id, None), repeated=True)
    for member in planned_from.visible:
        if not set(keys or (WHOLE_TABLE,)).issuperset(member.partitions):
            hold_member(member.columns, target.contract, where=f"{dataset}, member {member.name}")
    filled = [_fill(member, target, provenance) for member in new]
    info = {
        **_united([commit.info for _, commit in filled]),
        "dataset": dataset,
        "contract": target.contract.fingerprint,
        "commit_id": commit_id,
        "members": {member.name: member.location for member, _ in filled},
    }
    version = _swap([member for member, _ in filled], target, info, planned_from=planned_from, transaction_id=commit_id)
    return Commit(dataset=dataset, version=version, entries=entries_of(dataset, version, info), info=info)


def _fill(new: NewMember, target: Target, provenance: Provenance) -> tuple[Member, Commit]:
    """Write and audit a member, arrange its files, and close it; it is visible once the pointer names it."""
    contract, mine = target.contract, _of(provenance, new.partitions or (WHOLE_TABLE,), new.onto)
    # A retry with the same inputs reuses its table; with other inputs it must not publish the earlier result.
    inputs = json.dumps([commit_id_of(target, new.partitions), asdict(mine)], sort_keys=True, default=str)
    digest = hashlib.sha256(inputs.encode()).hexdigest()[:10]
    location = new.onto.location if new.onto else f"{new.name}-{digest}"
    table = members.table_of(contract.dataset, location)
    inner = replace(target, contract=replace(contract, dataset=table))
    commit = committed(target.lake, table, commit_id_of(inner, new.partitions))
    if commit is None:
        commit = (
            overwrite_partitions(new.frame, inner, new.partitions, mine)
            if new.partitions
            else overwrite_table(new.frame, inner, mine)
        )
    version = new.arrange(inner, commit.version) if new.arrange else commit.version
    if new.frozen or not (isinstance(contract.write, ByPeriod) and contract.write.slices):
        _close(target.lake, table)
    member = Member(
        name=new.name,
        location=location,
        version=version,
        partition_column=contract.partition_column,
        columns={column.name: column.type for column in contract.columns},
        frozen=new.frozen,
        rows_of={key: entry.rows_out for key, entry in commit.entries.items()},
        run_id=target.run.run_id,
        since_version=0,
        visible_from=datetime.now(timezone.utc),
    )
    return member, commit


def _swap(
    new: Sequence[Member], target: Target, info: dict[str, Any], *, planned_from: Members, transaction_id: str
) -> int:
    """Replace the visible members of the same partitions by new ones, in one commit."""
    lake, dataset = target.lake, target.contract.dataset
    partitions = {key for member in new for key in member.partitions}

    def places(state: Members) -> set[tuple[str, int, tuple[str, ...]]]:
        return {(member.location, member.version, member.partitions) for member in state.covering(partitions)}

    base = planned_from
    for _ in range(TRIES):
        if places(base) != places(planned_from):
            break
        version, moment = base.version + 1, datetime.now(timezone.utc)
        published = [replace(member, since_version=version, visible_from=moment) for member in new]
        rows = [*base.superseded(partitions, version, moment), *published]
        if members.commit(lake, dataset, base, rows, info, transaction_id=transaction_id) is not None:
            return version
        # Another run committed first. If it wrote other partitions, its commit is kept and this one follows it.
        time.sleep(random.uniform(0.005, 0.05))
        base = members.seen(lake, dataset)
    raise ConcurrentWrite(where=dataset)


def _of(provenance: Provenance, partitions: Sequence[str], onto: Member | None) -> Provenance:
    def mine(values: Mapping[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in values.items() if key in partitions}

    return replace(
        provenance,
        additions=Additions(at=onto.version, of=mine(provenance.additions.of)) if onto else Additions(),
        accounts=mine(provenance.accounts),
        expected=mine(provenance.expected),
        files=mine(provenance.files),
        landed=mine(provenance.landed),
    )


def _close(lake: Lake, name: str) -> None:
    table = lake.caught_up(name)
    assert table is not None
    if table.metadata().configuration.get(CLOSED) != "true":
        table.alter.set_table_properties({CLOSED: "true"})


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


def replace_periods(
    frame: DataFrame, target: Target, partitions: Sequence[str], provenance: Provenance, *, thaw: bool = False
) -> Commit:
    """Replace some periods: one audited member per period, and one commit that makes all of them visible."""
    keys, added = tuple(sorted(set(partitions))), provenance.additions
    lake, dataset, column = target.lake, target.contract.dataset, target.contract.partition_column
    assert column is not None, "use the Proxy for a dataset that is written whole"
    assert keys, "name at least one period"
    seen = members.seen(lake, dataset)
    if added.of and seen.version != added.at:
        raise ConcurrentWrite(where=dataset)
    if not thaw:
        # One that the event log does not know is computed again, from what has landed.
        _refuse_frozen(seen, tuple(EventLog(lake).publications(dataset, keys)), target.contract)
    new = [
        NewMember(name=key, frame=rows, partitions=(key,), onto=seen.covering([key])[0] if key in added.of else None)
        for key, rows in zip(keys, _split(frame, column, keys), strict=True)
    ]
    return publish_members(new, target, provenance, planned_from=seen)


def extensible(lake: Lake, dataset: str, keys: Collection[str]) -> Mapping[str, Member]:
    """Find the periods to whose member rows can be added: not frozen, and not written to since."""
    return {
        member.partitions[0]: member
        for member in members.seen(lake, dataset).covering(keys)
        if not member.frozen and len(member.partitions) == 1
        if lake.version(members.table_of(dataset, member.location)) == member.version
    }


def freeze(
    spark: SparkSession, target: Target, *, final_before: str, arrange: Arrange | None = None
) -> Sequence[Member]:
    """Turn the periods of each final year into one immutable member, and return these members.

    A year with a period that the event log does not know is skipped: it is computed again first.
    """
    lake, dataset, contract = target.lake, target.contract.dataset, target.contract
    columns = {column.name: column.type for column in contract.columns}
    frozen = []
    final = {member.partitions[0][:_YEAR] for member in visible(lake, dataset) if not member.frozen}
    for year in sorted(year for year in final if year < final_before[:_YEAR]):
        # Read again for each year: the swap of the previous year has moved the pointer.
        seen = members.seen(lake, dataset)
        chosen = [it for it in seen.visible if not it.frozen and it.partitions[0].startswith(year)]
        keys = tuple(sorted(key for member in chosen for key in member.partitions))
        published = EventLog(lake).publications(dataset, keys)
        if len(chosen) < 2 or not published.keys() >= set(keys):
            # The rest is stale: the rows of its members must not become final.
            continue
        for member in chosen:
            hold_member(member.columns, contract, where=f"{dataset}, member {member.name}")
        accounts = {
            key: Account(
                rows_in=entry.rows_in,
                reasons={reason: rows for reason, rows in entry.reasons.items() if reason not in contract.reasons},
            )
            for key, entry in published.items()
        }
        rows_of = {key: {"rows": count} for member in chosen for key, count in member.rows_of.items()}
        provenance = Provenance(inputs={dataset: seen.version}, accounts=accounts, expected=rows_of)
        buckets = contract.buckets
        if buckets is not None and not all(buckets.column in member.columns for member in chosen):
            # Rows that are older than the column have no bucket, so their table must not state any.
            buckets = None
        taken = {member.name for member in seen.visible}
        name = next(name for name in (year, *(f"{year}-{number}" for number in range(2, 1000))) if name not in taken)
        rows = lake.read_members(spark, dataset, chosen, columns)
        new = NewMember(name=name, frame=rows, partitions=keys, frozen=True, arrange=arrange)
        filled, _ = _fill(new, replace(target, contract=replace(contract, buckets=buckets)), provenance)
        once = f"{dataset}/freeze {name}/{target.run.run_id}"
        # Without measures the commit does not count as a publication: no row of the dataset has changed.
        info = {"commit_id": once, "frozen": list(keys), "run_id": target.run.run_id, "member": filled.location}
        _swap([filled], target, info, planned_from=seen, transaction_id=once)
        frozen.append(name)
    return [member for member in visible(lake, dataset) if member.name in frozen]


def _refuse_frozen(seen: Members, keys: Sequence[str], contract: Contract) -> None:
    frozen = {key: it.name for it in seen.covering(keys) if it.frozen for key in it.partitions if key in keys}
    if frozen:
        key = min(frozen)
        assert contract.grain is not None
        fault = PlatformError(
            what=f"{key} is frozen, it is part of the immutable member {frozen[key]}",
            where=contract.dataset,
            next_step=Remedy(
                "leave it: rows that came too late are counted; if it must be put right: ",
                Run(start=key, end=following(key, contract.grain), datasets=(contract.dataset,), accept=FROZEN),
            ),
        )
        fault.partitions = frozenset(frozen)
        raise fault


def _split(frame: DataFrame, column: str, keys: Sequence[str]) -> list[DataFrame]:
    from pyspark.sql import functions as F

    # Rows of other periods go with the last one, whose audits refuse them; a filter would drop them silently.
    others = F.coalesce(F.col(column).isin(*keys[:-1]), F.lit(False))
    return [*[frame.where(F.col(column) == key) for key in keys[:-1]], frame.where(~others) if keys[1:] else frame]


def visible(lake: Lake, dataset: str) -> Sequence[Member]:
    """List the members whose union is the dataset now, in the order of their periods."""
    return sorted(members.seen(lake, dataset).visible, key=lambda member: member.partitions)
