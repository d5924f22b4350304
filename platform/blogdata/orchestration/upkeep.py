"""Keeps the tables of the lake tidy: a list of actions, each of which decides without Spark whether it has work to do.

An action works on one dataset at a time, under a claim, so that a run that publishes the dataset meanwhile loses
nothing. A dataset that another run is publishing is left for the next time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from blogdata.errors import PlatformError
from blogdata.evidence.claims import PARTITION_STATE
from blogdata.evidence.events import EVENTS, EventLog
from blogdata.evidence.held_versions import first_needed, held_versions
from blogdata.lake import members, unneeded
from blogdata.lake.committer import ConcurrentWrite
from blogdata.lake.lake import Lake
from blogdata.lake.shares import shared_files
from blogdata.orchestration import turns
from blogdata.patterns.ingestion import compactor
from blogdata.planning.clock import lookback_of, newest_ended
from blogdata.publish.contract import Contract
from blogdata.publish.target import RunContext, Target

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


OWN = tuple(
    Contract(dataset=name, description=what, owner="team:platform", columns=())
    for name, what in (
        (EVENTS, "The event log"),
        (PARTITION_STATE, "Claims on partitions"),
    )
)
"""The platform's own tables; the action that compacts leaves them to what writes them."""
BUSY = "another run is publishing it"


@dataclass(frozen=True, kw_only=True)
class Inspection:
    """What an action decides by."""

    lake: Lake
    events: EventLog
    now: datetime


@dataclass(frozen=True, kw_only=True)
class Upkeep(Inspection):
    """A run that maintains tables; `spark` opens the session, once there is something to do that needs it."""

    run: RunContext
    spark: Callable[[], AbstractContextManager[SparkSession]]
    probe: str | None = None

    def target(self, contract: Contract) -> Target:
        return Target(lake=self.lake, contract=contract, run=self.run, probe=self.probe)

    @contextmanager
    def claimed(self, contract: Contract, partitions: Sequence[str]) -> Iterator[list[str]]:
        """Claim partitions of a dataset; none if another run publishes anything of it."""
        # A companion is published under the claim of its main dataset.
        held = turns.claims(self.lake, contract.main).held()
        with turns.taken(self.lake, contract.main, () if held else partitions) as mine:
            yield mine


@dataclass(frozen=True, kw_only=True)
class Due:
    """Work that an action has found; no partitions if it concerns the table as a whole."""

    dataset: str
    action: str
    partitions: tuple[str, ...] = ()
    files: int
    bytes: int


@dataclass(frozen=True, kw_only=True)
class Done:
    """Work that an action has done, or why it has left it for the next time."""

    due: Due
    files: int = 0
    bytes: int = 0
    left: str = ""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """Maintenance of a dataset that an error has ended; that of the other datasets goes on."""

    dataset: str
    error: PlatformError


class Action(Protocol):
    """One kind of maintenance."""

    name: str

    def due(self, seen: Inspection, contract: Contract) -> Due | None:
        """Decide, without Spark, whether there is work on a dataset; None if there is none."""

    def do(self, upkeep: Upkeep, contract: Contract, due: Due) -> Done:
        """Do the work."""


def look(seen: Inspection, actions: Sequence[Action], contracts: Iterable[Contract]) -> Iterator[Due | Fault]:
    """Find the work that is due, without Spark and without a claim."""
    for contract in contracts:
        try:
            yield from (due for action in actions if (due := action.due(seen, contract)) is not None)
        except PlatformError as error:
            yield Fault(dataset=contract.dataset, error=error)


def maintain(upkeep: Upkeep, actions: Sequence[Action], contracts: Iterable[Contract]) -> Iterator[Done | Fault]:
    """Do what is due, dataset by dataset, in the order of the actions; each one sees what those before it have left."""
    for contract in contracts:
        try:
            for action in actions:
                if (due := action.due(upkeep, contract)) is not None:
                    yield action.do(upkeep, contract, due)
        except PlatformError as error:
            yield Fault(dataset=contract.dataset, error=error)


class Vacuuming:
    """Removes the data files that no version needs which may still be read; members are looked at one by one."""

    name = "vacuum"

    def due(self, seen: Inspection, contract: Contract) -> Due | None:
        """Decide whether files of a dataset are needed by no version, and have been for a day: not for every one."""
        earlier = Inspection(lake=seen.lake, events=seen.events, now=seen.now - unneeded.MARGIN)
        if not _data_files(earlier, contract):
            return None
        return _due(contract, self.name, _data_files(seen, contract))

    def do(self, upkeep: Upkeep, contract: Contract, due: Due) -> Done:
        unneeded.remove(_data_files(upkeep, contract))
        return Done(due=due)


class LogCleaning:
    """Removes the files of logs that nobody has to read any more; before, the event log has read all there is."""

    name = "log"

    def __init__(self, companions: Mapping[str, Iterable[str]]) -> None:
        self._companions = companions

    def due(self, seen: Inspection, contract: Contract) -> Due | None:
        """Decide whether a log has files that are older than it has to tell of."""
        return _due(contract, self.name, self._files(seen, contract))

    def do(self, upkeep: Upkeep, contract: Contract, due: Due) -> Done:
        unneeded.remove(self._files(upkeep, contract))
        return Done(due=due)

    def _files(self, seen: Inspection, contract: Contract) -> list[Path]:
        table = seen.lake.table(contract.dataset)
        if table is None:
            return []
        old = unneeded.log_files(seen.lake, contract.dataset, table.version(), seen.now)
        if not old:
            # Without a file to remove at any rate, the event log is not asked.
            return []
        if contract in OWN:
            needed = min([table.version(), *held_versions(seen.lake, seen.events, contract, contract.dataset)])
        else:
            beside = self._companions.get(contract.dataset, ())
            needed = first_needed(seen.lake, seen.events, contract, beside, now=seen.now)
        return unneeded.log_files(seen.lake, contract.dataset, needed, seen.now)


def _data_files(seen: Inspection, contract: Contract) -> list[Path]:
    found = [file for table in tables(seen.lake, contract.dataset) for file in _unneeded(seen, contract, table)]
    # Commits that the table's log has lost may come back from a backup, and need their files then.
    return found if found and _is_whole(seen, contract.dataset) else []


def _unneeded(seen: Inspection, contract: Contract, table: str) -> Iterator[Path]:
    held = held_versions(seen.lake, seen.events, contract, table, now=seen.now)
    shared = shared_files(seen.lake, contract.dataset)
    # The log may have lost a shared version: Delta itself cleans it up after thirty days, whoever holds what.
    return (file for file in unneeded.data_files(seen.lake, table, held, seen.now) if file not in shared)


def _is_whole(seen: Inspection, dataset: str) -> bool:
    table = seen.lake.table(dataset)
    return table is not None and table.version() >= seen.events.recorded(dataset)


def tables(lake: Lake, dataset: str) -> list[str]:
    """List the tables of a dataset: its own, and those of its members that are not removed."""
    table = lake.caught_up(dataset)
    if table is None:
        return []
    kept = (
        {one.location for one in members.members_of(table).all if not one.removed_at}
        if members.is_pointer(table)
        else ()
    )
    return [dataset, *(members.table_of(dataset, location) for location in sorted(kept))]


def _due(contract: Contract, action: str, files: Iterable[Path]) -> Due | None:
    sizes = unneeded.sizes(files)
    return Due(dataset=contract.dataset, action=action, files=len(sizes), bytes=sum(sizes)) if sizes else None


class Compacting:
    """Merges small files; members have few, they are written whole or added to now and then."""

    name = "compact"

    def due(self, seen: Inspection, contract: Contract) -> Due | None:
        """Decide whether partitions of a dataset have too many small files."""
        table = None if contract in OWN else seen.lake.caught_up(contract.dataset)
        if table is None or members.is_pointer(table):
            return None
        files = compactor.files(table)
        newest = max((file.partition for file in files), default="")
        found = compactor.due(files, seen.now, is_final=lambda key: _is_final(contract, key, newest))
        if not found:
            return None
        return Due(
            dataset=contract.dataset,
            action=self.name,
            partitions=tuple(found),
            files=sum(map(len, found.values())),
            bytes=sum(file.bytes for small in found.values() for file in small),
        )

    def do(self, upkeep: Upkeep, contract: Contract, due: Due) -> Done:
        """Compact those of the partitions that no other run holds; what another run changes meanwhile is left."""
        with upkeep.claimed(contract, due.partitions) as mine:
            if not mine:
                return Done(due=due, left=BUSY)
            try:
                with upkeep.spark() as spark:
                    compacted = compactor.compact(spark, upkeep.target(contract), mine)
            except ConcurrentWrite as error:
                return Done(due=due, left=error.what)
        if compacted is None:
            return Done(due=due, left="its files are as few as they can be")
        done = replace(due, partitions=tuple(mine), files=compacted.files_before, bytes=compacted.bytes_before)
        return Done(due=done, files=compacted.files, bytes=compacted.bytes)


def _is_final(contract: Contract, key: str, newest: str) -> bool:
    lookback = lookback_of(contract)
    return lookback is None or lookback.is_final(key, newest_ended(newest, lookback.grain))


def actions(contracts: Iterable[Contract]) -> Sequence[Action]:
    """Return the actions, those that replace files before those that remove them."""
    companions: dict[str, list[str]] = {}
    for contract in contracts:
        if contract.appears_with is not None:
            companions.setdefault(contract.appears_with, []).append(contract.dataset)
    return (Compacting(), Vacuuming(), LogCleaning(companions))
