"""What has to run: the stale partitions and everything downstream of them, in the order of the lineage.

Problem: a partition that runs again makes partitions of other datasets stale, and those make more stale. A person who
backfills by hand runs too much, runs it in the wrong order, or forgets the weekly table.
How it works: the contracts declare what each dataset reads and how partitions correspond. A request is expanded along
these reads. Each partition is planned once, however many causes it has. One run computes the whole plan, with one
computation per task, even if its partitions are scattered.

A dataset is planned once each input that it cannot do without is there or planned: what is computed from a source that
has never landed has no partition, and no empty table.
The trap: planning from the graph of datasets alone. Which event hours an arrival hour touches depends on its rows; the
reaches look it up in the ledger.
When not to use it: for tables without recorded inputs; staleness is derived from versions.
Source: Data Engineering Design Patterns, ch. 3 (Dead-Letter, Static and Dynamic Late Data Integrator: snowball
backfilling).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from types import MappingProxyType

from blogdata.contract.contract import Wanted
from blogdata.contract.partitions import Grain, ends_of, following, start_of
from blogdata.errors import ConfigurationError, PlatformError
from blogdata.errors.remedies import Land, Remedy
from blogdata.ledger.executions import ReplayTooLong
from blogdata.ledger.faults import by_reason
from blogdata.planning.expired import PartitionExpired
from blogdata.planning.graph import Graph, Task
from blogdata.planning.staleness import Staleness

ASKED, STALE, NEW = "asked for", "its input changed", "not computed yet"
"""Reasons of planned partitions: requested by a person, stale, or stale and never published."""


@dataclass(frozen=True, kw_only=True)
class Planned:
    """One planned computation; its keys are sorted, and empty for a table that is written whole."""

    task: Task
    keys: tuple[str, ...]
    reasons: Mapping[str, int]

    @property
    def datasets(self) -> tuple[str, ...]:
        return self.task.datasets

    @property
    def span(self) -> str:
        return spanned(self.keys, self.task.grain)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The computations that will run, in order, and the errors that keep others from running."""

    runs: Sequence[Planned]
    refused: Sequence[PlatformError] = ()

    def wanted(self) -> dict[str, list[str]]:
        return {run.task.main: list(run.keys) for run in self.runs}


@dataclass(frozen=True, kw_only=True)
class Planner(Staleness):
    def spread(self, asked: Wanted, *, without: Collection[str] = ()) -> Wanted:
        """Expand a request (dataset to partitions, each with the reason) to all partitions that it makes stale.

        A companion's partitions are redirected to its main dataset. The result has main datasets only.

        Raises:
            ReplayTooLong: More later executions would run again than a contract allows.
        """
        begin: dict[str, dict[str, str]] = {}
        for dataset, keys in asked.items():
            if contract := self.graph.contracts.get(dataset):
                begin[contract.main] = {**keys, **begin.get(contract.main, {})}
        wanted = {main: dict(keys) for main, keys in begin.items()}
        mains = [task.main for task in self.graph.tasks if task.main not in without]
        for task in map(self.graph.task_of, mains):
            below = wanted.setdefault(task.main, {})
            # Readers of a companion look its partitions up under its own name.
            wanted.update(dict.fromkeys(task.datasets, below))
            if not self.has_input(task, wanted):
                continue
            for edge, read in self.graph.edges(task):
                if edge.above in task.datasets and edge.above != edge.below.dataset:
                    continue
                for key, cause in read.reach.reached(self.look, edge, wanted, begin).items():
                    below.setdefault(key, f"reads {edge.above} {cause}".rstrip())
            for key in self.expired(task, below):
                del below[key]
        return {main: wanted[main] for main in mains if wanted[main]}

    def plan_of_replay(self, asked: Wanted, *, refused: Mapping[str, ReplayTooLong] = MappingProxyType({})) -> Plan:
        """Plan a replay: the requested partitions and everything they make stale, but datasets beyond their limit.

        A watermark that the replay moves is known only after it ran: the next run finds the hours it makes stale.
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
        """Plan what a run would compute now, as far as it is known before the run starts.

        Held hours do not run. Their errors are in `refused`, unless the arrival that holds them runs in this plan.
        """
        asked = {
            main: {key: STALE if key in self.look.published(main) else NEW for key in keys}
            for main, keys in self.all_stale().items()
        }
        plan = self.plan_of_replay(asked, refused={error.where: error for error in self.refused()})
        held = self.held(rerunning=plan.wanted()).values()
        refused = [*plan.refused, *(error for errors in held for error in errors.values())]
        return Plan(runs=plan.runs, refused=tuple({str(error): error for error in refused}.values()))

    def resolve_keys(self, dataset: str, partitions: str | None) -> Sequence[str]:
        """Resolve the partitions that a person typed to keys, sorted; refuse what does not exist or has expired.

        The text has keys and ranges `first..last`, separated by commas, or is `all`; None for a dataset that is written
        whole. A range, and a day of hours, has its existing partitions, of which there has to be one.
        """
        task = self.graph.task_of(dataset)
        known = sorted(self.known(task))
        if bool(task.grain) != bool(partitions):
            raise ConfigurationError(
                what=f"{dataset} is written {'by partitions' if task.grain else 'whole'}",
                where="partitions",
                next_step="name some, first..last, or all; none of a dataset that is written whole",
            )
        if not known:
            raise ConfigurationError(
                what=f"{dataset} has never been published, and nothing has landed for it",
                where=dataset,
                next_step=Remedy("land something first: ", Land()),
            )
        if task.grain is None or partitions is None:
            return known
        chosen = known if partitions == "all" else _keys_in(dataset, task.grain, partitions, known)
        expired = self.expired(task, chosen)
        # A range has the partitions that are left of it; those named one by one have to exist.
        named = [part.strip() for part in partitions.split(",") if ".." not in part]
        asked = [key for key in chosen if key in expired and (key in named or len(expired) == len(chosen))]
        if asked:
            raise expired[asked[0]]
        return [key for key in chosen if key not in expired]


def planned(graph: Graph, wanted: Wanted) -> list[Planned]:
    runs = []
    for task in graph.tasks:
        keys = wanted.get(task.main)
        if keys:
            listed = () if task.grain is None else tuple(sorted(keys))
            runs.append(Planned(task=task, keys=listed, reasons=Counter(keys.values())))
    return runs


_LISTED = 3


def spanned(keys: Sequence[str], grain: Grain | None) -> str:
    """Format partitions for display, such as `2026-01-05 … 2026-01-09 (4, with gaps)`; few with gaps are listed."""
    if not keys or grain is None:
        return "whole"
    gaps = any(following(key, grain) != other for key, other in pairwise(keys))
    if len(keys) == 1 or (gaps and len(keys) <= _LISTED):
        return ", ".join(keys)
    return f"{keys[0]} … {keys[-1]} ({len(keys)}{', with gaps' if gaps else ''})"


def _keys_in(dataset: str, grain: Grain, partitions: str, known: Sequence[str]) -> list[str]:
    chosen = set[str]()
    for part in partitions.split(","):
        # Filters the existing keys instead of generating those of the range, which may have an open end.
        begins, ends = ends_of(part, grain)
        keys = {key for key in known if begins <= key <= ends}
        if not keys:
            raise ConfigurationError(
                what=f"{dataset} has no partition {begins if begins == ends else f'{begins}..{ends}'}",
                where="partitions",
                next_step=f"choose from {known[0]} to {known[-1]} ({len(known)} partitions)",
            )
        chosen |= keys
    return sorted(chosen)


@dataclass(frozen=True, kw_only=True)
class Window:
    start: datetime | None
    end: datetime | None

    @classmethod
    def parsed(cls, text: str) -> Window:
        start, end = (datetime.fromisoformat(end) if end else None for end in text.split(".."))
        return cls(start=start, end=end)

    def written(self) -> str:
        return f"{self.start.isoformat() if self.start else ''}..{self.end.isoformat() if self.end else ''}"

    def holds(self, key: str, grain: Grain | None) -> bool:
        """Return whether a partition overlaps the window; always true for a table that is written whole."""
        if grain is None:
            return True
        start = start_of(key, grain)
        return (self.end is None or start < self.end) and (self.start is None or start + grain.length > self.start)


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The partitions that a person has selected: those that overlap a window, of some datasets; empty: all."""

    window: Window | None = None
    select: Sequence[str] = ()

    def chosen(self, task: Task) -> bool:
        return not self.select or bool({*self.select} & {*task.datasets})

    def holds(self, task: Task, key: str) -> bool:
        return self.chosen(task) and (self.window is None or self.window.holds(key, task.grain))

    def require_kept(self, planner: Planner) -> tuple[int, list[PartitionExpired]]:
        """Count the selected partitions, landed, published or stale, and name the expired ones; refuse if all are.

        A table that is written whole lies in every span, so it counts there only if it is named.
        """
        selected, refused = 0, list[PartitionExpired]()
        for task in planner.graph.tasks:
            if task.grain is None and self.window and not self.select:
                continue
            keys = {key for key in planner.known(task) if self.holds(task, key)}
            selected += len(keys)
            refused += planner.expired(task, keys).values()
        if refused and len(refused) == selected:
            raise refused[-1]
        return selected, refused

    def waiting(self, planner: Planner) -> Iterator[tuple[str, str]]:
        """Describe what waits for a person, by reason; each with the line by which a failed step names it."""
        for dataset, errors in planner.held().items():
            task = planner.graph.task_of(dataset)
            held = {key: error for key, error in sorted(errors.items()) if self.holds(task, key)}
            for why, faults in by_reason(held).items():
                span = spanned([*faults], task.grain)
                yield f"{dataset} {span} waits for a person: {why}", f"{task.main}: {why}"
