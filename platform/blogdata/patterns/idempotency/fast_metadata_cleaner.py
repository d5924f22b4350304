"""Fast Metadata Cleaner: a period is a table of its own behind one view; to replace it is one operation on metadata.

Problem: a job deletes the rows of its last run before it writes them again. To find them it reads and rewrites files of
a table that grows every day, so the job takes longer every day.

How it works: the rows of each period are a table of their own, a member; the dataset is the union of the members that
its pointer names. To replace a period, its new rows are written to a new member and audited; then one commit of the
pointer swaps it for the old member (:func:`replace_periods`). No file of any other period is opened. The old member is
kept until no reader can still use it (`blogdata.lake.retired`). Rows that a period lacks are added to its member, and
the pointer then names the newer version of that (`blogdata.publish.writes.Slices`). :func:`freeze` turns the final
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

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from blogdata.errors import PlatformError
from blogdata.errors.remedies import Remedy, Run
from blogdata.evidence.events import EventLog
from blogdata.lake import members
from blogdata.lake.commit import Account, Commit, Entry
from blogdata.lake.lake import Lake
from blogdata.lake.members import Member, Members
from blogdata.patterns.idempotency import audited_members
from blogdata.patterns.idempotency.audited_members import Arrange, NewMember
from blogdata.publish.audit import FROZEN
from blogdata.publish.contract import Contract
from blogdata.publish.incompatibilities import hold_member
from blogdata.publish.partitions import following
from blogdata.publish.target import Provenance, Target

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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
        raise audited_members.published_meanwhile(target.contract.dataset)
    if not thaw:
        # One that the event log does not know is computed again, from what has landed.
        published = EventLog(target.lake).publications(target.contract.dataset, keys)
        _refuse_frozen(seen, tuple(published), target.contract)
    new = [
        NewMember(name=key, frame=rows, partitions=(key,), onto=seen.covering([key])[0] if key in added.of else None)
        for key, rows in zip(keys, _split(frame, column, keys), strict=True)
    ]
    return audited_members.publish_members(new, target, provenance, planned_from=seen)


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
        filled = audited_members.fill(new, mine, provenance)
        once = f"{dataset}/freeze {name}/{target.run.run_id}"
        # Without measures the commit does not count as a publication: no row of the dataset has changed.
        info = {"commit_id": once, "frozen": list(keys), "run_id": target.run.run_id, "member": filled.location}
        audited_members.swap([filled], target, info, planned_from=seen, transaction_id=once)
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
