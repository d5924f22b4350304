"""What has to run: the partitions that are stale, and what follows from them, dataset by dataset in their order.

Problem: a partition that runs again makes partitions of other datasets stale, these make others stale, and a person
who backfills by hand runs too much, in the wrong order, or forgets the week.

How it works: the contracts declare what each dataset reads and how partitions correspond. What is asked for spreads
along these reads, each partition is taken once whatever asked for it, and one run computes all of it, scattered or not,
one computation a dataset.

The trap: to plan from a picture of the lineage. Which event hours an hour of arrival touches is in its rows; the reads
ask the ledger for it.

When not to use it: to keep a table right that has no recorded inputs; staleness is told from versions.

Source: Data Engineering Design Patterns, ch. 3 (Dead-Letter, Static and Dynamic Late Data Integrator: snowball
backfilling).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from types import MappingProxyType

from errors import ConfigurationError, PlatformError
from evidence.executions import ReplayTooLong, due
from lake.commit import WHOLE_TABLE
from patterns.error_management import static_late_data_integrator
from planning import look as clock
from planning.finality import lookback_of
from planning.graph import Graph, Task
from planning.held import DEAD_LETTERS, held
from planning.look import Snapshot
from planning.reach import Landed, Within
from publish.contract import Contract, On, Wanted
from publish.partitions import Grain, ends_of, following, key_of, parse_keys

ASKED = "asked for"
"""Why a partition runs that a person named."""
STALE = "its input changed"
"""Why a partition runs that nobody asked for."""


class Scope(str, Enum):
    """Which stale partitions a run computes."""

    ALL = "all"
    """Every one, periods that are still running included."""
    READY = "ready"
    """Those that run by themselves now (:class:`publish.contract.On`)."""
    ENDED = "ended"
    """Those of datasets with a clock whose period has ended, complete or not."""


@dataclass(frozen=True, kw_only=True)
class Planned:
    """What one computation will publish.

    Args:
        task: The datasets.
        keys: Partitions, in order; none for tables that are written whole.
        reasons: Why, to the number of partitions it holds for.
    """

    task: Task
    keys: tuple[str, ...]
    reasons: Mapping[str, int]

    @property
    def datasets(self) -> tuple[str, ...]:
        """What is published, the main dataset first."""
        return self.task.datasets

    @property
    def span(self) -> str:
        """Its partitions, for people."""
        return spanned(self.keys, self.task.grain)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What runs, and what does not as long as nobody says yes to it.

    Args:
        runs: The computations, in their order.
        refused: Why there is none of a dataset although one is due, for each such dataset.
    """

    runs: Sequence[Planned]
    refused: Sequence[PlatformError] = ()

    def wanted(self) -> dict[str, list[str]]:
        """Give the partitions by main dataset."""
        return {run.task.main: list(run.keys) for run in self.runs}


@dataclass(frozen=True, kw_only=True)
class Planner:
    """Asks one state of a deployment what has to run.

    Args:
        graph: The lineage.
        look: What has landed and what is published.
        accepted: Guards that a person has lifted: what waits for their word runs as well.
        scope: Which of the stale partitions count.
    """

    graph: Graph
    look: Snapshot
    accepted: Collection[str] = field(default=())
    scope: Scope = Scope.ALL

    def stale(self, task: Task) -> dict[str, str]:
        """Find the partitions of a task that are behind their inputs.

        Returns:
            Partition to what it lacks; the same text as long as its inputs are the same. Those that wait for a person
            are not among them.
        """
        lacking = self._lacking(task)
        for contract in task.contracts:
            for key in () if self._lifted(contract) else held(self.look, self.graph, contract):
                lacking.pop(key, None)
        if self._too_long(task, lacking) is not None:
            return {}
        return {
            key: "; ".join(states)
            for key, states in sorted(lacking.items())
            if self._counts(task.contracts[0], key, lacking)
        }

    def all_stale(self) -> dict[str, dict[str, str]]:
        """Find what is stale of every task, by main dataset."""
        return {task.main: found for task in self.graph.tasks if (found := self.stale(task))}

    def refused(self) -> list[ReplayTooLong]:
        """List why nothing of a dataset runs although it is stale: too many executions would follow."""
        found = (self._too_long(task, self._lacking(task)) for task in self.graph.tasks)
        return [error for error in found if error is not None]

    def held(
        self, *, anew: Mapping[str, Collection[str]] = MappingProxyType({})
    ) -> dict[str, dict[str, PlatformError]]:
        """Find the partitions that are not computed before a person has looked, by dataset, each with the reason.

        Args:
            anew: Dataset to partitions that are computed before, from other content, and hold nothing.
        """
        return {
            name: dict(found)
            for name, contract in self.graph.contracts.items()
            if not self._lifted(contract) and (found := held(self.look, self.graph, contract, anew=anew))
        }

    def waiting(self, task: Task) -> dict[str, PlatformError]:
        """Find the partitions of a task that a person has to look at: held ones, and those that failed for good.

        One that has failed waits as long as its inputs are those it failed with.
        """
        stale = self.stale(task)
        failed: dict[str, PlatformError] = {
            key: fault.error for key, fault in self.look.faults(task.main).items() if stale.get(key) == fault.state
        }
        held_ones = {
            key: why for contract in task.contracts for key, why in self.held().get(contract.dataset, {}).items()
        }
        return dict(sorted({**failed, **held_ones}.items()))

    def spread(self, asked: Wanted, *, without: Collection[str] = ()) -> Wanted:
        """Expand a request to all partitions that it makes stale.

        Args:
            asked: Dataset to partitions, each with the reason; those of a dataset that appears with another one stand
                for the other's.
            without: Main datasets to leave alone.

        Returns:
            Main dataset to all partitions that must run, those asked for included.

        Raises:
            ReplayTooLong: More executions would follow than a contract allows.
        """
        begin = self._of_mains(asked)
        wanted: dict[str, dict[str, str]] = {main: dict(keys) for main, keys in begin.items()}
        mains = [task.main for task in self.graph.tasks if task.main not in without]
        for task in map(self.graph.task_of, mains):
            below = wanted.setdefault(task.main, {})
            # Whoever reads a dataset that appears with this one finds its partitions under that name.
            wanted.update(dict.fromkeys(task.datasets, below))
            for edge, read in self.graph.edges(task):
                if edge.above in task.datasets and edge.above != edge.below.dataset:
                    continue
                for key, cause in read.reach.reached(self.look, edge, wanted, begin).items():
                    below.setdefault(key, f"reads {edge.above} {cause}".rstrip())
        return {main: wanted[main] for main in mains if wanted[main]}

    def replay(self, asked: Wanted, *, refused: Mapping[str, ReplayTooLong] = MappingProxyType({})) -> Plan:
        """Plan what brings everything in line with partitions that run again.

        Args:
            asked: What runs again, and why.
            refused: Main datasets that are not computed, with the reason.

        Returns:
            The computations, without those of a dataset of which too many executions would follow. A watermark that a
            replay moves shows only when it has run: the next run finds the hours whose late rows it decides.
        """
        known = dict(refused)
        while True:
            try:
                wanted = self.spread(asked, without=known)
            except ReplayTooLong as error:
                known[error.where] = error
            else:
                return Plan(runs=planned(self.graph, wanted), refused=tuple(known.values()))

    def outstanding(self) -> Plan:
        """Plan what a run would do now, as far as can be told before it begins.

        Hours that wait for a person are not among it; what is wrong with them is, unless what they wait for runs anew.
        """
        asked = {main: dict.fromkeys(keys, STALE) for main, keys in self.all_stale().items()}
        plan = self.replay(asked, refused={error.where: error for error in self.refused()})
        held_ones = self.held(anew=plan.wanted())
        refused = [*plan.refused, *(fault for found in held_ones.values() for fault in found.values())]
        return Plan(runs=plan.runs, refused=tuple({str(fault): fault for fault in refused}.values()))

    def known(self, task: Task) -> set[str]:
        """Find all partitions a task could run: what has landed for it, what it has published, and what is stale."""
        found = {key for contract in task.contracts for key in self.look.published(contract.dataset)}
        found.update(self._lacking(task))
        for _, read in self.graph.edges(task):
            if isinstance(read.reach, Landed):
                keys = {partition.key for partition in self.look.landed(read.reach.table, read.reach.grain)}
                found.update(keys if task.grain is not None else {WHOLE_TABLE} if keys else set())
        return found

    def named(self, dataset: str, partitions: str | None) -> Sequence[str]:
        """Find the partitions a person names.

        Args:
            dataset: Whose.
            partitions: As :func:`parse_keys` reads it, or `all`; None for a dataset that is written whole. A range
                `first..last` stands for what lies in it, any other key must be there.

        Returns:
            Their keys.

        Raises:
            ConfigurationError: The dataset has none of that name.
        """
        task = self.graph.task_of(dataset)
        there = sorted(self.known(task))
        _require_as_partitioned(dataset, task.grain, partitions, there)
        if task.grain is None or partitions is None or partitions == "all":
            return there
        return _chosen(dataset, task.grain, partitions, there)

    def _lacking(self, task: Task) -> dict[str, list[str]]:
        lacking: dict[str, list[str]] = {}
        for edge, read in self.graph.edges(task):
            for key, state in read.reach.behind(self.look, edge).items():
                lacking.setdefault(key, []).append(state)
        return lacking

    def _too_long(self, task: Task, keys: Collection[str]) -> ReplayTooLong | None:
        if task.contracts[0].executed is None or not keys:
            return None
        try:
            due(task.contracts[0], self.look.executions(task.main), keys)
        except ReplayTooLong as error:
            return error
        return None

    def _lifted(self, contract: Contract) -> bool:
        return contract.runs.judged_by is not None and DEAD_LETTERS in self.accepted

    def _counts(self, contract: Contract, key: str, stale: Collection[str]) -> bool:
        if self.scope is Scope.READY:
            return self._runs_by_itself(contract, key)
        return self.scope is Scope.ALL or self._has_ended(contract, key, stale)

    def _has_ended(self, contract: Contract, key: str, stale: Collection[str]) -> bool:
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
        return all(
            part in self.look.published(read.dataset)
            for read in contract.reads
            if isinstance(read.reach, Within)
            for part in read.reach.parts(key, contract.grain)
        )

    def _of_mains(self, asked: Wanted) -> dict[str, dict[str, str]]:
        """Redirect requests for a dataset to the one that publishes it."""
        mains: dict[str, dict[str, str]] = {}
        for dataset, keys in asked.items():
            if dataset in self.graph.contracts:
                for key, why in keys.items():
                    mains.setdefault(self.graph.contracts[dataset].main, {}).setdefault(key, why)
        return mains


def planned(graph: Graph, wanted: Wanted) -> list[Planned]:
    """Put what must run into order, one computation a task."""
    runs = []
    for task in graph.tasks:
        keys = wanted.get(task.main)
        if keys:
            listed = () if task.grain is None else tuple(sorted(keys))
            runs.append(Planned(task=task, keys=listed, reasons=Counter(keys.values())))
    return runs


def spanned(keys: Sequence[str], grain: Grain | None) -> str:
    """Name partitions for people: their number, and whether there are gaps between them."""
    if not keys or grain is None:
        return "whole"
    if len(keys) == 1:
        return keys[0]
    gaps = any(following(one, grain) != other for one, other in pairwise(keys))
    return f"{keys[0]} … {keys[-1]} ({len(keys)}{', with gaps' if gaps else ''})"


def _require_as_partitioned(dataset: str, grain: Grain | None, partitions: str | None, there: Sequence[str]) -> None:
    if grain is None and partitions:
        raise ConfigurationError(
            what=f"{dataset} is written whole", where="partitions", next_step="name the dataset only"
        )
    if grain is not None and not partitions:
        raise ConfigurationError(
            what=f"which partitions of {dataset}?",
            where="partitions",
            next_step=f"name some, like {there[-1] if there else '2026-01-05'}, first..last, or all",
        )
    if not there:
        raise ConfigurationError(
            what=f"{dataset} has never been published, and nothing has landed for it",
            where=dataset,
            next_step="land something first: blogdata land --help",
        )


def _chosen(dataset: str, grain: Grain, partitions: str, there: Sequence[str]) -> list[str]:
    chosen, unknown = set[str](), set[str]()
    for part in partitions.split(","):
        if ".." in part:
            # Looked up and not listed: a person may name a range that has no end.
            begins, ends = ends_of(part, grain)
            found = {key for key in there if begins <= key <= ends}
            unknown |= set() if found else {f"{begins}..{ends}"}
        else:
            keys = set(parse_keys(part, grain))
            found = keys & set(there)
            unknown |= keys - found
        chosen |= found
    if unknown:
        missing = sorted(unknown)
        raise ConfigurationError(
            what=f"{dataset} has no partition {', '.join(missing[:3])}{' …' if len(missing) > 3 else ''}",
            where="partitions",
            next_step=f"choose from {there[0]} to {there[-1]} ({len(there)} partitions)",
        )
    return sorted(chosen)
