"""The lineage that the contracts declare: the inputs of each dataset, and the order in which datasets run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from graphlib import TopologicalSorter

from blogdata.contract.contract import Contract, Edge, Read
from blogdata.contract.partitions import Grain

LANDING = "landing."


@dataclass(frozen=True, kw_only=True)
class Task:
    """The datasets that one computation publishes: a main dataset and its companions."""

    contracts: tuple[Contract, ...]

    @property
    def main(self) -> str:
        return self.contracts[0].dataset

    @property
    def datasets(self) -> tuple[str, ...]:
        return tuple(contract.dataset for contract in self.contracts)

    @property
    def grain(self) -> Grain | None:
        return self.contracts[0].grain

    @property
    def in_order(self) -> bool:
        """Whether its periods are executed in order, each on the state that the one before it left."""
        return self.contracts[0].executed is not None

    @property
    def continues(self) -> bool:
        """Whether a partition is computed from what the one before it left."""
        return any(read.dataset in self.datasets for read in self.contracts[0].reads)


@dataclass(frozen=True, kw_only=True)
class Graph:
    contracts: Mapping[str, Contract]

    @cached_property
    def tasks(self) -> tuple[Task, ...]:
        """All tasks in topological order: every input comes before its readers."""
        sorter: TopologicalSorter[str] = TopologicalSorter()
        for name, contract in self.contracts.items():
            sorter.add(contract.main)
            for read in contract.reads:
                if read.dataset.startswith(LANDING):
                    continue
                assert read.dataset in self.contracts, f"{name} reads {read.dataset}, which no contract declares"
                if (above := self.contracts[read.dataset].main) != contract.main:
                    sorter.add(contract.main, above)
        # A circle of datasets is an error that names them.
        sorter.prepare()
        waves: list[list[str]] = []
        while sorter.is_active():
            ready = sorted(sorter.get_ready(), key=list(self.contracts).index)
            waves.append(ready)
            sorter.done(*ready)
        inner = [main for wave in waves for main in wave if self._is_read(main)]
        # First the tasks that others read. Then the leaves, which people wait for: those of the longest paths first.
        ends = [main for wave in reversed(waves) for main in wave if not self._is_read(main)]
        return tuple(
            Task(contracts=(self.contracts[main], *[c for c in self.contracts.values() if c.appears_with == main]))
            for main in (*inner, *ends)
        )

    def task_of(self, dataset: str) -> Task:
        return next(task for task in self.tasks if dataset in task.datasets)

    def edges(self, task: Task) -> Iterator[tuple[Edge, Read]]:
        for contract in task.contracts:
            for read in contract.reads:
                yield Edge(above=read.dataset, below=contract), read

    def has_input(self, task: Task, is_known: Callable[[Read], bool]) -> bool:
        """Return whether a task can be computed: it has all inputs it cannot do without, and at least one input."""
        reads = [read for edge, read in self.edges(task) if edge.above not in task.datasets]
        known = [read for read in reads if is_known(read)]
        return bool(known) and all(read.optional or read in known for read in reads)

    def with_input(self, known: Iterable[str]) -> frozenset[str]:
        """Find the datasets that can be computed from published ones and landed tables (`landing.table`), these too."""
        names = set(known)
        for task in self.tasks:
            if names & {*task.datasets} or self.has_input(task, lambda read: read.dataset in names):
                names.update(task.datasets)
        return frozenset(names & self.contracts.keys())

    def downstream(self, datasets: Iterable[str]) -> frozenset[str]:
        below = set(datasets)
        for task in self.tasks:
            if any(edge.above in below for edge, _ in self.edges(task)):
                below.update(task.datasets)
        return frozenset(below - set(datasets))

    def upstream(self, datasets: Iterable[str]) -> frozenset[str]:
        above = set(datasets)
        for task in reversed(self.tasks):
            if above & set(task.datasets):
                above.update(edge.above for edge, _ in self.edges(task))
        return frozenset(above & self.contracts.keys() - set(datasets))

    def _is_read(self, main: str) -> bool:
        return any(
            self.contracts[read.dataset].main == main != contract.main
            for contract in self.contracts.values()
            for read in contract.reads
            if read.dataset in self.contracts
        )
