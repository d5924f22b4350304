"""The lineage that the contracts declare: the inputs of each dataset, and the order in which datasets run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
                above = self._main(read.dataset, of=name)
                if above is not None and above != contract.main:
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
        others = {main: [one for one in self.contracts.values() if one.appears_with == main] for main in self.contracts}
        return tuple(Task(contracts=(self.contracts[main], *others[main])) for main in (*inner, *ends))

    def task_of(self, dataset: str) -> Task:
        return next(task for task in self.tasks if dataset in task.datasets)

    def edges(self, task: Task) -> Iterator[tuple[Edge, Read]]:
        for contract in task.contracts:
            for read in contract.reads:
                yield Edge(above=read.dataset, below=contract), read

    def has_input(self, task: Task, there: Callable[[Read], bool]) -> bool:
        """Return whether a task can be computed: it has all inputs it cannot do without, and at least one input."""
        reads = [read for edge, read in self.edges(task) if edge.above not in task.datasets]
        found = [read for read in reads if there(read)]
        return bool(found) and all(read.optional or read in found for read in reads)

    def with_input(self, there: Iterable[str]) -> frozenset[str]:
        """Find the datasets that can be computed from published ones and landed tables (`landing.table`), these too."""
        found = set(there)
        for task in self.tasks:
            if found & {*task.datasets} or self.has_input(task, lambda read: read.dataset in found):
                found.update(task.datasets)
        return frozenset(found & self.contracts.keys())

    def awaited(self, dataset: str, there: Iterable[str]) -> Sequence[str]:
        """List the landed tables (`landing.table`) that have to come before a dataset can be computed.

        A dataset without any input that it cannot do without waits for one of them.
        """
        known = self.with_input(there) | {*there}
        found, look_at = set[str](), [dataset]
        while look_at:
            name = look_at.pop()
            if name in known:
                continue
            if name not in self.contracts:
                found.add(name)
                continue
            reads = [read for edge, read in self.edges(self.task_of(name)) if edge.above != name]
            look_at += [read.dataset for read in reads if not read.optional] or [read.dataset for read in reads]
        return sorted(found)

    def downstream(self, datasets: Iterable[str]) -> frozenset[str]:
        found = set(datasets)
        for task in self.tasks:
            if any(edge.above in found for edge, _ in self.edges(task)):
                found.update(task.datasets)
        return frozenset(found - set(datasets))

    def upstream(self, datasets: Iterable[str]) -> frozenset[str]:
        found = set(datasets)
        for task in reversed(self.tasks):
            if found & set(task.datasets):
                found.update(edge.above for edge, _ in self.edges(task))
        return frozenset(found & self.contracts.keys() - set(datasets))

    def _is_read(self, main: str) -> bool:
        return any(
            self.contracts[read.dataset].main == main != contract.main
            for contract in self.contracts.values()
            for read in contract.reads
            if read.dataset in self.contracts
        )

    def _main(self, dataset: str, *, of: str) -> str | None:
        if dataset in self.contracts:
            return self.contracts[dataset].main
        assert dataset.startswith(LANDING), f"{of} reads {dataset}, which no contract declares: mend its `reads`"
        return None
