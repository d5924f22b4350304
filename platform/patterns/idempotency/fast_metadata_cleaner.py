"""Fast Metadata Cleaner: a period is a table of its own behind one view; to replace it is one operation on metadata.

Problem: a job removes the rows of its last run before it writes them again. To find them it reads, and then rewrites,
files of a table that grows every day, and so does the time it takes.

How it works: each period's rows are a table of their own, a member; the dataset's name stands for the union of those
its pointer names. To replace a period, its new rows are written to a new member, audited, and one commit of the pointer
has it take the old one's place: no file of any other period is opened, however many there are. The old member stays
until nobody can be reading it any more (`lake.retired`). :func:`freeze` turns the periods of a past year, once
they are final, into one immutable member: tables without end are a limit of every store, and a view of them grows slow.

The trap: to drop the table before the view stops naming it. Readers fail in between, and whoever dies there leaves a
view of nothing. Here the pointer moves first. Another one: granularity. The period is the least that can be replaced;
a day of it, or one customer in it, cannot.

When not to use it: for rows that are corrected one by one (Merger), and on stores without cheap metadata (Data
Overwrite). A column that is added is null in periods written before, frozen or not; when it must be there, replay them.

Source: Data Engineering Design Patterns, ch. 4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from errors import ConfigurationError, PlatformError
from evidence.events import EventLog
from lake import members
from lake.commit import Account, Commit, Entry
from lake.lake import Lake
from lake.members import Member, Members
from patterns.idempotency import audited_members
from patterns.idempotency.audited_members import NewMember
from patterns.storage import tables
from publish.contract import Contract
from publish.schema import Partitioning
from publish.target import Provenance, Target

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FROZEN = "frozen"
"""What a person accepts who replaces a period that is frozen."""
_YEAR = len("2026")


class FrozenPeriod(PlatformError):
    """A period was to be replaced that is part of an immutable member."""


@dataclass(frozen=True, kw_only=True)
class Frozen:
    """Periods that became one member.

    Args:
        member: Its name, the year.
        partitions: The periods.
        rows: Rows of all of them.
        version: The dataset's version that shows it.
    """

    member: str
    partitions: tuple[str, ...]
    rows: int
    version: int


def replace_periods(
    frame: DataFrame, target: Target, partitions: Sequence[str], provenance: Provenance, *, thaw: bool = False
) -> Commit:
    """Replace some periods by a frame: one audited member each, and one commit that shows all of them.

    Args:
        frame: Rows of these periods only.
        target: The dataset, its contract and the run.
        partitions: Keys of the periods; one without rows ends up empty.
        provenance: Inputs and accounts.
        thaw: Replace frozen ones too; the frozen member keeps its other periods.

    Returns:
        The commit.

    Raises:
        ConfigurationError: The dataset has no partitions, or none is named.
        FrozenPeriod: A period is frozen, and was not taken back; nothing was written.
        RowsOutsidePredicate: A row is of another period; nothing was published.
        ConcurrentWrite: Another run replaced one of them meanwhile; transient.
        PlatformError: As `publish`.
    """
    keys = tuple(sorted(set(partitions)))
    column = _partitioning(target.contract, keys).column
    seen = members.base(target.lake, target.contract.dataset)
    if not thaw:
        # What was taken back (`blogdata repair`) is lost, and no more what a frozen member has for good.
        published = EventLog(target.lake).publications(target.contract.dataset, keys)
        _refuse_frozen(seen, tuple(published), target.contract.dataset)
    new = [
        NewMember(name=key, frame=rows, partitions=(key,))
        for key, rows in zip(keys, _split(frame, column, keys), strict=True)
    ]
    return audited_members.publish(new, target, provenance, seen=seen)


def freezable(seen: Members, *, final_before: str) -> Mapping[str, tuple[Member, ...]]:
    """Give the members that can become one, by year: those of the years that are final to their last period.

    Args:
        seen: The pointer.
        final_before: Key of the first period that may still change.

    Returns:
        Year to its members, in order; only years with more than one.
    """
    years: dict[str, list[Member]] = {}
    for member in seen.visible:
        year = member.partitions[0][:_YEAR]
        if not member.frozen and year < final_before[:_YEAR]:
            years.setdefault(year, []).append(member)
    return {year: tuple(found) for year, found in sorted(years.items()) if len(found) > 1}


def freeze(spark: SparkSession, target: Target, *, final_before: str) -> Sequence[Frozen]:
    """Turn the periods of each year that is final into one immutable member: one audited write and one swap a year.

    Args:
        spark: The session.
        target: The dataset, its contract and the run.
        final_before: Key of the first period that may still change.

    Returns:
        What was frozen; the accounts of the periods stay as they were published. A year with a period that was taken
        back (`blogdata repair`) is not among it: its rows are to be computed again first.

    Raises:
        AuditFailed: The frozen rows are not those that were published; nothing changed for readers.
        SchemaDrift: The contract lacks a column of the periods, or has another type for it.
        ConcurrentWrite: A period was replaced meanwhile; transient.
    """
    dataset = target.contract.dataset
    columns = {column.name: column.type for column in target.contract.columns}
    events = EventLog(target.lake)
    frozen = []
    for year in freezable(members.seen(target.lake, dataset), final_before=final_before):
        # Read again for each year: the swap of the one before has moved the pointer.
        seen = members.seen(target.lake, dataset)
        chosen = freezable(seen, final_before=final_before).get(year, ())
        if not chosen:
            continue
        keys = tuple(sorted(key for member in chosen for key in member.partitions))
        published = events.publications(dataset, keys)
        if not published.keys() >= set(keys):
            # A period that was taken back is behind: what its member has now must not become final.
            continue
        for member in chosen:
            tables.hold_to(member.columns, columns, where=f"{dataset}, member {member.name}")
        provenance = Provenance(
            inputs={dataset: seen.version},
            accounts={key: _account(published[key], target.contract) for key in keys},
            expected={key: {"rows": count} for member in chosen for key, count in member.rows_of.items()},
        )
        name = _free(year, seen)
        rows = target.lake.read_members(spark, dataset, chosen, columns)
        new = NewMember(name=name, frame=rows, partitions=keys, frozen=True)
        filled = audited_members.fill(new, target, provenance)
        once = f"{dataset}/freeze {name}/{target.run.run_id}"
        # Without measures it is no publication: no row of the dataset has changed.
        info = {"commit_id": once, "frozen": list(keys), "run_id": target.run.run_id, "member": filled.location}
        version = audited_members.swap([filled], target, info, seen=seen, once=once)
        frozen.append(Frozen(member=name, partitions=keys, rows=filled.commit.rows_out, version=version))
    return frozen


def _partitioning(contract: Contract, keys: Sequence[str]) -> Partitioning:
    if contract.partitioning is None or not keys:
        raise ConfigurationError(
            what="only a dataset with periods is replaced by period, and at least one has to be named",
            where=contract.dataset,
            next_step="use patterns.idempotency.proxy for a dataset that is written whole",
        )
    return contract.partitioning


def _refuse_frozen(seen: Members, keys: Sequence[str], dataset: str) -> None:
    found = sorted((key, member.name) for member in seen.covering(keys) if member.frozen for key in member.partitions)
    frozen = [(key, name) for key, name in found if key in keys]
    if frozen:
        key, name = frozen[0]
        fault = FrozenPeriod(
            what=f"{key} is frozen, it is part of the immutable member {name}"
            + (f"; and so are {len(frozen) - 1} more" if len(frozen) > 1 else ""),
            where=dataset,
            next_step=f"leave it: rows that came too late are counted; if it must be put right: blogdata run "
            f"--from {key} --to <end> --select {dataset} --accept {FROZEN} (in the UI: the run's tag "
            f"blogdata/accept={FROZEN})",
        )
        fault.partitions = frozenset(key for key, _ in frozen)
        raise fault


def _split(frame: DataFrame, column: str, keys: Sequence[str]) -> list[DataFrame]:
    from pyspark.sql import functions as F

    # What belongs to none of them goes with the last one, whose predicate refuses it: it must not vanish in a filter.
    others = F.coalesce(F.col(column).isin(*keys[:-1]), F.lit(False))
    return [*[frame.where(F.col(column) == key) for key in keys[:-1]], frame.where(~others) if keys[1:] else frame]


def _account(entry: Entry, contract: Contract) -> Account:
    stated = {reason: rows for reason, rows in entry.reasons.items() if reason not in contract.reasons}
    return Account(rows_in=entry.rows_in, reasons=stated)


def _free(year: str, seen: Members) -> str:
    taken = {member.name for member in seen.visible}
    return next(name for name in (year, *(f"{year}-{number}" for number in range(2, 1000))) if name not in taken)


def visible(lake: Lake, dataset: str) -> Sequence[Member]:
    """Give the members whose union the dataset's name stands for now, in the order of their periods."""
    return sorted(members.seen(lake, dataset).visible, key=lambda member: member.partitions)
