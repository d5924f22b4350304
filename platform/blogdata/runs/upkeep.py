"""Keeps the tables of the lake tidy: each action decides without Spark whether it has work to do on a dataset.

An action works on one dataset at a time, under a claim, so that a run that publishes the dataset meanwhile loses
nothing. A dataset that another run is publishing is left for the next time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from blogdata.contract.contract import Contract
from blogdata.contract.publication import WHOLE_TABLE
from blogdata.errors import PlatformError
from blogdata.ledger.claims import PARTITION_STATE
from blogdata.ledger.events import EVENTS, EventLog
from blogdata.ledger.executions import EMPTY, applied, base_of
from blogdata.planning.clock import lookback_of, newest_ended
from blogdata.runs import turns
from blogdata.table import compactor, companions, members, unneeded
from blogdata.table.faults import ConcurrentWrite
from blogdata.table.lake import Lake
from blogdata.table.manifest import shared_files
from blogdata.table.target import RunContext, Target

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


OWN = tuple(
    Contract(dataset=name, description=what, owner="team:platform", columns=())
    for name, what in ((EVENTS, "The event log"), (PARTITION_STATE, "Claims on partitions"))
)
"""The platform's own tables; the action that compacts leaves them to what writes them."""
BUSY = "another run is publishing it"


@dataclass(frozen=True, kw_only=True)
class Upkeep:
    """A run that maintains tables; `spark` opens the session, once there is something to do that needs it."""

    lake: Lake
    events: EventLog
    contracts: Sequence[Contract]
    now: datetime
    run: RunContext
    spark: Callable[[], AbstractContextManager[SparkSession]]
    probe: str | None = None


@dataclass(frozen=True, kw_only=True)
class Done:
    """What an action did, or why it has left it for the next time: files that it has replaced or removed."""

    dataset: str
    action: str
    partitions: int = 0
    files: int
    bytes: int
    files_after: int = 0
    bytes_after: int = 0
    left: str = ""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """Maintenance of a dataset that an error has ended; that of the other datasets goes on."""

    dataset: str
    error: PlatformError


Action = Callable[[Upkeep, Contract], Done | None]
"""One kind of maintenance; None if there was nothing to do."""


def maintain(upkeep: Upkeep, actions: Sequence[Action] | None = None) -> Iterator[Done | Fault]:
    """Do what is due, dataset by dataset; each action sees what those before it have left."""
    for contract in upkeep.contracts:
        try:
            for action in actions or (compact, vacuum, clean_log):
                if (done := action(upkeep, contract)) is not None:
                    yield done
        except PlatformError as error:
            yield Fault(dataset=contract.dataset, error=error)


def compact(upkeep: Upkeep, contract: Contract) -> Done | None:
    """Merge small files of partitions that no other run holds; members have few, and are written whole or added to."""
    table = None if contract in OWN else upkeep.lake.caught_up(contract.dataset)
    if table is None or members.is_pointer(table):
        return None
    files = compactor.files(table)
    newest = max((file.partition for file in files), default="")
    lookback = lookback_of(contract)
    small = compactor.due(
        files,
        upkeep.now,
        is_final=lambda key: lookback is None or lookback.is_final(key, newest_ended(newest, lookback.grain)),
    )
    if not small:
        return None
    sizes = [file.bytes for of in small.values() for file in of]
    due = Done(dataset=contract.dataset, action="compact", partitions=len(small), files=len(sizes), bytes=sum(sizes))
    # A companion is published under the claim of its main dataset.
    held = turns.claims(upkeep.lake, contract.main).held()
    with turns.taken(upkeep.lake, contract.main, () if held else [*small]) as mine:
        if not mine:
            return replace(due, left=BUSY)
        target = Target(lake=upkeep.lake, contract=contract, run=upkeep.run, probe=upkeep.probe)
        try:
            with upkeep.spark() as spark:
                compacted = compactor.compact(spark, target, mine)
        except ConcurrentWrite as error:
            return replace(due, left=error.what)
    if compacted is None:
        return replace(due, left="its files are as few as they can be")
    done = replace(due, partitions=len(mine), files=compacted.files_before, bytes=compacted.bytes_before)
    return replace(done, files_after=compacted.files, bytes_after=compacted.bytes)


def vacuum(upkeep: Upkeep, contract: Contract) -> Done | None:
    """Remove the unneeded data files once some have been so for a day."""
    if not unneeded_data(upkeep.lake, upkeep.events, contract, upkeep.now - unneeded.MARGIN):
        return None
    return _removed(contract, "vacuum", unneeded_data(upkeep.lake, upkeep.events, contract, upkeep.now))


def clean_log(upkeep: Upkeep, contract: Contract) -> Done | None:
    """Remove the unneeded files of a log; before, the event log has read all there is."""
    beside = [companion.dataset for companion in upkeep.contracts if companion.appears_with == contract.dataset]
    return _removed(contract, "log", unneeded_log(upkeep.lake, upkeep.events, contract, beside, upkeep.now))


def _removed(contract: Contract, action: str, files: Sequence[Path]) -> Done | None:
    sizes = unneeded.sizes(files)
    unneeded.remove(files)
    return Done(dataset=contract.dataset, action=action, files=len(sizes), bytes=sum(sizes)) if sizes else None


def unneeded_data(lake: Lake, events: EventLog, contract: Contract, now: datetime) -> list[Path]:
    """List the data files that no version needs which may still be read; members are looked at one by one."""
    dataset = contract.dataset
    # Delta cleans up its log after thirty days, so a shared version may not be in it any more.
    shared = shared_files(lake, dataset)
    files = []
    for name in tables(lake, dataset):
        held = held_versions(lake, events, contract, name, now=now)
        files += [file for file in unneeded.data_files(lake, name, held, now) if file not in shared]
    table = lake.table(dataset) if files else None
    # Commits that the table's log has lost may come back from a backup, and need their files then.
    return files if table is not None and table.version() >= events.recorded(dataset) else []


def unneeded_log(
    lake: Lake, events: EventLog, contract: Contract, beside: Iterable[str], now: datetime
) -> Sequence[Path]:
    """List the files of a log that no reader needs; `beside` are the companions of the dataset."""
    table = lake.table(contract.dataset)
    if table is None or not unneeded.log_files(lake, contract.dataset, table.version(), now):
        # Without a file to remove at any rate, the event log is not asked.
        return []
    if contract in OWN:
        needed = min([table.version(), *held_versions(lake, events, contract, contract.dataset)])
    else:
        needed = first_needed(lake, events, contract, beside, now=now)
    return unneeded.log_files(lake, contract.dataset, needed, now)


def tables(lake: Lake, dataset: str) -> list[str]:
    """List the tables of a dataset: its own, and those of its members that are not removed."""
    table = lake.caught_up(dataset)
    if table is None:
        return []
    every = members.members_of(table).all if members.is_pointer(table) else ()
    kept = sorted({member.location for member in every if not member.removed_at})
    return [dataset, *(members.table_of(dataset, location) for location in kept)]


def held_versions(
    lake: Lake, events: EventLog, contract: Contract, table: str, *, now: datetime | None = None
) -> set[int]:
    """Find the versions of a table that must stay readable, however old: every removal of files obeys this list."""
    points = _restore_points(events, contract) if table == contract.dataset else set()
    unread = _unread_changes(lake, events, contract, now or datetime.now(timezone.utc))
    return points | unread | _visible(lake, contract.dataset, table)


def first_needed(
    lake: Lake, events: EventLog, contract: Contract, beside: Iterable[str], *, now: datetime | None = None
) -> int:
    """Return the oldest version that a log must still have: somebody holds it, or has not read what came after it."""
    events.publications(contract.dataset)
    held = held_versions(lake, events, contract, contract.dataset, now=now)
    followed = [companions.followed(lake, name) for name in beside if lake.table(name) is not None]
    return min([events.recorded(contract.dataset), *held, *followed])


def _restore_points(events: EventLog, contract: Contract) -> set[int]:
    """Find the versions on which the executions that may be replayed were merged."""
    if contract.executed is None:
        return set()
    made = applied(events.history(contract.dataset))
    kept = made if contract.replay_limit is None else made[-contract.replay_limit - 1 :]
    return {base_of(entry) for entry in kept} - {EMPTY}


def _unread_changes(lake: Lake, events: EventLog, contract: Contract, now: datetime) -> set[int]:
    """Find the versions from which a reader of the change feed reads on; one that has not come for long begins anew."""
    held: set[int] = set()
    for reader in contract.feeds:
        entry, table = events.publications(reader).get(WHOLE_TABLE), lake.table(contract.dataset)
        if entry and table and entry.committed_at and now - entry.committed_at < unneeded.LOGGED:
            held.update(range(entry.inputs[contract.dataset], table.version()))
    return held


def _visible(lake: Lake, dataset: str, table: str) -> set[int]:
    if table == dataset:
        return set()
    known = {members.table_of(dataset, member.location): member for member in members.seen(lake, dataset).all}
    member = known.get(table)
    return set() if member is None or member.removed_at else {member.version}
