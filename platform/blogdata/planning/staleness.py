"""What is stale: the partitions that lack the current state of something they read, and which of them run.

The mapping of partitions to those they read is the reach of each input (:mod:`blogdata.planning.reach`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType

from blogdata.contract.contract import Contract, Look, Wanted
from blogdata.contract.partitions import Grain, coarser, following, key_of, previous, start_of
from blogdata.contract.publication import WHOLE_TABLE, Entry, kept
from blogdata.contract.schedule import On
from blogdata.errors import PlatformError
from blogdata.errors.remedies import Remedy, Run
from blogdata.landing import dead_letter
from blogdata.ledger.executions import ReplayTooLong, due
from blogdata.ledger.faults import input_not_published
from blogdata.patterns.data_flow import single_runner
from blogdata.patterns.error_management import static_late_data_integrator
from blogdata.planning import clock
from blogdata.planning.clock import lookback_of
from blogdata.planning.expired import PartitionExpired, refusals
from blogdata.planning.graph import Graph, Task
from blogdata.planning.reach import EventsOf, Landed, Within
from blogdata.planning.reaches import Carried
from blogdata.planning.snapshot import Snapshot, is_known

DEAD_LETTERS = "dead_letters"
"""Name of the guard that a person lifts to continue without the rejected rows."""
GOES_ON = Remedy("land the hour again; or go on without them: ", Run(accept=DEAD_LETTERS))
"""The remedy for too many dead letters."""


def held(
    look: Look, graph: Graph, contract: Contract, *, rerunning: Mapping[str, Collection[str]] = MappingProxyType({})
) -> dict[str, PlatformError]:
    """Find the event hours that wait for a person: an arrival that they have not read has too many dead letters.

    An acceptance is not stored: an event hour published from the arrival with as many dead letters proves it. An
    arrival that landed again runs first, and shows whether the new files are usable; an expired one holds nothing.
    """
    if contract.runs.judged_by is None:
        return {}
    letters = graph.contracts[contract.runs.judged_by]
    assert letters.max_share is not None
    waiting: dict[str, PlatformError] = {}
    for read in contract.reads:
        if not isinstance(read.reach, EventsOf):
            continue
        arrivals, integrated = look.published(read.dataset), look.published(contract.dataset)
        for hour, entry in sorted(kept(arrivals).items()):
            if hour in rerunning.get(read.dataset, ()) or _dead(entry) <= letters.max_share * entry.rows_out:
                continue
            seen = _unseen(hour, entry, integrated, read.dataset, read.reach)
            dead = {key: (_dead(arrival), arrival.rows_out) for key, arrival in arrivals.items()} if seen else {}
            if dead and (error := dead_letter_error(letters, hour, dead)):
                for event_hour, version in seen.items():
                    if not _accepted(look.history(read.dataset), entry, version):
                        waiting.setdefault(event_hour, error)
    return waiting


def _dead(arrival: Entry) -> int:
    return int(arrival.measures["dead"])


def dead_letter_error(letters: Contract, part: str, rejected: Mapping[str, tuple[int, int]]) -> PlatformError | None:
    assert letters.max_share is not None
    assert letters.partitioning is not None
    return dead_letter.error_for_partition(
        part,
        rejected,
        max_share=letters.max_share,
        dataset=letters.dataset,
        column=letters.partitioning.column,
        then=GOES_ON,
    )


def _unseen(hour: str, entry: Entry, integrated: Mapping[str, Entry], source: str, reach: EventsOf) -> dict[str, int]:
    """Map the event hours that have not read this version of an arrival to the version they read; -1 if none."""
    touched = {hour, *(key for key, *_ in entry.breakdowns[reach.breakdown] if key is not None)}
    seen = {key: integrated[key].inputs[source] if key in integrated else -1 for key in touched}
    return {key: version for key, version in seen.items() if version < entry.version}


def _accepted(history: Sequence[Entry], entry: Entry, version: int) -> bool:
    """Return whether the arrival, at the version that was read, already had as many dead letters."""
    before = [past for past in history if past.partition == entry.partition and past.version <= version]
    return bool(before) and _dead(before[-1]) >= _dead(entry)


class Scope(str, Enum):
    ALL = "all"
    READY = "ready"
    """Those that may run automatically now (:class:`blogdata.contract.schedule.On`)."""
    ENDED = "ended"
    """Ended periods of datasets with a clock, complete or not."""


class Lane(str, Enum):
    """Which of the stale partitions a run computes, by what made them stale; the queue tells runs apart by it."""

    ALL = "all"
    LANDED = "landed"
    """What has just landed, and what was never published."""
    AGAIN = "again"
    """What was published before."""


@dataclass(frozen=True, kw_only=True)
class Staleness:
    graph: Graph
    look: Snapshot
    accepted: Collection[str] = field(default=())
    scope: Scope = Scope.ALL

    def stale(self, task: Task) -> dict[str, str]:
        """Find the stale partitions of a task that are in scope and not held, each with the input state it lacks.

        The text changes only if the inputs change. Empty if the replay limit of the task would be exceeded.
        """
        lacking = self._lacking(task)
        for contract in task.contracts:
            for key in () if self._lifted(contract) else held(self.look, self.graph, contract):
                lacking.pop(key, None)
        if self._too_long(task, lacking) is not None:
            return {}
        counted = [key for key in sorted(lacking) if self._counts(task.contracts[0], key, lacking)]
        return {key: "; ".join(lacking[key]) for key in counted}

    def in_lane(self, task: Task, stale: Mapping[str, str], lane: Lane, *, max_republished: int = 0) -> dict[str, str]:
        """Keep those of the stale partitions that a run of a lane computes.

        A table that is written whole or in order has one next state, so each lane computes it. The lane `landed`
        computes the newest of those published before, too, which the late rows of an hour touch.
        """
        if lane is Lane.ALL or task.grain is None or task.in_order:
            return dict(stale)
        before = stale.keys() & self.look.ever_published(task.main)
        if lane is Lane.AGAIN:
            return {key: stale[key] for key in stale if key in before}
        if any(isinstance(read.reach, Landed) for _, read in self.graph.edges(task)):
            # Its files changed, unless its table was lost.
            before -= self.look.published(task.main).keys()
        left = sorted(before)[: max(len(before) - max_republished, 0)]
        return {key: stale[key] for key in stale if key not in left}

    def all_stale(self) -> dict[str, dict[str, str]]:
        return {task.main: stale for task in self.graph.tasks if (stale := self.stale(task))}

    def refused(self) -> list[ReplayTooLong]:
        return [error for task in self.graph.tasks if (error := self._too_long(task, self._lacking(task)))]

    def held(
        self, task: Task | None = None, *, rerunning: Mapping[str, Collection[str]] = MappingProxyType({})
    ) -> dict[str, dict[str, PlatformError]]:
        """Find the held partitions, which do not run until a person decides: dataset to partition to reason."""
        return {
            contract.dataset: errors
            for contract in (self.graph.contracts.values() if task is None else task.contracts)
            if not self._lifted(contract) and (errors := held(self.look, self.graph, contract, rerunning=rerunning))
        }

    def waiting(self, task: Task) -> dict[str, PlatformError]:
        """Find the partitions of a task that wait for a person: held ones, and those that failed permanently.

        A failed partition waits until its inputs change. If periods build on one another, the later ones wait, too
        (Single Runner).
        """
        stale = self.stale(task)
        waiting = self.failed(task, stale)
        for errors in self.held(task).values():
            waiting |= errors
        if task.in_order:
            waiting.update(single_runner.stopped(stale, waiting, dataset=task.main))
        return dict(sorted(waiting.items()))

    def failed(self, task: Task, stale: Mapping[str, str] | None = None) -> dict[str, PlatformError]:
        faults = self.look.faults(task.main)
        states = (self.stale(task) if stale is None else stale) if faults else {}
        return {key: error for key, (state, error) in faults.items() if states.get(key) == state}

    def expired(self, task: Task, keys: Collection[str]) -> dict[str, PartitionExpired]:
        return refusals(self.look, self.graph, task, keys) if keys else {}

    def unpublished(self, task: Task, keys: Collection[str]) -> dict[str, PlatformError]:
        """Find those of some partitions of whose inputs nothing is published: they would be published without a row.

        A period may lack hours, a person may ask for it before it ends; what was published once can be computed again.
        What has not landed is refused by the step that reads it.
        """
        new = set(keys) - self.look.published(task.main).keys()
        reads = [read for edge, read in self.graph.edges(task) if edge.above not in task.datasets]
        if task.grain is None or not new or any(isinstance(read.reach, Landed) for read in reads):
            return {}
        new -= self.known(task)
        for read in reads:
            if isinstance(read.reach, Within):
                new -= {coarser(hour, Grain.HOUR, task.grain) for hour in self.look.published(read.dataset)}
        above = [read.dataset for read in reads if not read.optional] or [read.dataset for read in reads]
        return dict.fromkeys(sorted(new), input_not_published(task.main, sorted(new), above))

    def continuing(self, task: Task, *, after: Collection[str]) -> set[str]:
        """Find the partitions that are stale because the one before them, of `after`, has run."""
        return {
            key
            for edge, read in self.graph.edges(task)
            if isinstance(read.reach, Carried)
            for key in read.reach.behind(self.look, edge)
            if task.grain is not None and previous(key, task.grain) in after
        }

    def ahead(self, task: Task, keys: Collection[str], count: int) -> set[str]:
        """Find the published partitions that follow some partitions, as far as they can be computed again."""
        if task.grain is None or not keys:
            return set()
        published = (self.look.published(task.main).keys() & self.computable(task)) - self.waiting(task).keys()
        partitions, at = set[str](), set(keys)
        for _ in range(count):
            at = {following(key, task.grain) for key in at} & published
            partitions |= at
        return partitions

    def known(self, task: Task) -> set[str]:
        """Find all partitions a task could run: landed, published and stale ones, expired ones among them."""
        known = {key for contract in task.contracts for key in self.look.published(contract.dataset)}
        known.update(self._lacking(task))
        for _, read in self.graph.edges(task):
            if isinstance(read.reach, Landed):
                landed = self.look.landed(read.reach.table, read.reach.grain)
                known.update(WHOLE_TABLE if task.grain is None else partition.key for partition in landed)
        return known

    def computable(self, task: Task) -> set[str]:
        """Find the known partitions of a task that can be computed again: those of which no rows have expired."""
        known = self.known(task)
        return known - self.expired(task, known).keys()

    def has_input(self, task: Task, wanted: Wanted = MappingProxyType({})) -> bool:
        """Return whether a task can be computed; a task whose source has never landed cannot."""
        # What was published once stays up to date, even if all of an input was lost.
        return bool(self.look.published(task.main)) or self.graph.has_input(
            task, lambda read: bool(wanted.get(read.dataset)) or is_known(self.look, read)
        )

    def _lacking(self, task: Task) -> dict[str, list[str]]:
        lacking: dict[str, list[str]] = {}
        if not self.has_input(task):
            return lacking
        for edge, read in self.graph.edges(task):
            for key, state in read.reach.behind(self.look, edge).items():
                lacking.setdefault(key, []).append(state)
        for key in self.expired(task, lacking):
            del lacking[key]
        return lacking

    def _too_long(self, task: Task, keys: Collection[str]) -> ReplayTooLong | None:
        if not task.in_order or not keys:
            return None
        try:
            due(task.contracts[0], self.look.history(task.main), keys)
        except ReplayTooLong as error:
            return error
        return None

    def _lifted(self, contract: Contract) -> bool:
        return contract.runs.judged_by is not None and DEAD_LETTERS in self.accepted

    def _counts(self, contract: Contract, key: str, stale: Collection[str]) -> bool:
        if self.scope is not Scope.ENDED:
            return self.scope is Scope.ALL or self._runs_by_itself(contract, key)
        if contract.runs.at is None or contract.grain is None:
            return False
        newest = key_of(clock.now() - contract.grain.length, contract.grain)
        lookback = lookback_of(contract)
        return key <= newest if lookback is None else key in static_late_data_integrator.due(newest, stale, lookback)

    def _runs_by_itself(self, contract: Contract, key: str) -> bool:
        if contract.runs.on is On.INPUT or contract.grain is None:
            return True
        if contract.runs.on is On.FIRST_ALL_THERE and key in self.look.published(contract.dataset):
            return False
        at_deadline = contract.runs.on is On.DEADLINE
        if at_deadline and contract.runs.at is not None:
            due_at = start_of(key, contract.grain) + contract.grain.length + contract.runs.at.after
            if clock.now() >= due_at:
                return True
        return all(
            part in self.look.published(read.dataset)
            for read in contract.reads
            if isinstance(read.reach, Within) and not (at_deadline and not self.look.published(read.dataset))
            for part in read.reach.parts(key, contract.grain)
        )
