"""Replay planner: the smallest ordered set of runs after which every dataset agrees with its inputs again.

Problem: a partition that runs again makes partitions of other datasets stale, these make others stale, and a person
who backfills by hand runs too much, in the wrong order, or forgets the week.

How it works: datasets are declared in stages, in the order in which they must run, with links that tell which
partitions below have read given partitions above. What is asked for spreads along the links, each partition is taken
once whatever asked for it, and what remains is cut into runs: one for each gapless range of partitions that the
same datasets of a stage need.

The trap: to plan from a picture of the lineage. Which event hours an hour of arrival touches is in its rows; the links
ask the ledger for it.

When not to use it: to find what is stale already; a stage's own staleness says that, from versions.

Source: Data Engineering Design Patterns, ch. 3 (Dead-Letter, Static and Dynamic Late Data Integrator: snowball
backfilling).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from patterns.core.commit import WHOLE_TABLE, Entry
from patterns.core.errors import PlatformError
from patterns.core.events import EventLog
from patterns.core.partitions import Grain, contiguous

ASKED = "asked for"
Wanted = Mapping[str, Mapping[str, str]]
"""Dataset to the partitions that must run, each with its reason."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Datasets that can run together, in this order, for the same partitions.

    Args:
        name: For people.
        datasets: What runs.
        grain: Length of the partitions; None for tables that are written whole.
    """

    name: str
    datasets: tuple[str, ...]
    grain: Grain | None


@dataclass(frozen=True, kw_only=True)
class Link:
    """Which partitions of a dataset have read given partitions of another one.

    Args:
        above: What is read.
        below: What has read it.
        reach: Partitions above to partitions below, each with the one above that reaches it.
        asked_only: Follow it only from partitions a person asked for, where a normal run of `above` changes nothing
            that `below` has read before.
    """

    above: str
    below: str
    reach: Callable[[EventLog, Collection[str]], Mapping[str, str]]
    asked_only: bool = False


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """What a run will probably write and take, from the dataset's own past; None where there is none."""

    rows: int | None
    seconds: float | None


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    """One run.

    Args:
        stage: Where it belongs.
        datasets: What it materializes, in this order.
        keys: A gapless range of partitions; empty for tables that are written whole.
        reasons: Why, to the number of partitions it holds for.
    """

    stage: Stage
    datasets: tuple[str, ...]
    keys: tuple[str, ...]
    reasons: Mapping[str, int]

    @property
    def span(self) -> str:
        """Its partitions, for people."""
        return f"{self.keys[0]} … {self.keys[-1]} ({len(self.keys)})" if self.keys else "whole"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What runs, and what does not as long as nobody says yes to it.

    Args:
        runs: In their order.
        refused: Why there is no run of a dataset although one is due, for each such dataset.
    """

    runs: Sequence[PlannedRun]
    refused: Sequence[PlatformError] = ()


def spread(links: Sequence[Link], asked: Wanted, events: EventLog, *, within: Collection[str] | None = None) -> Wanted:
    """Add everything that what is asked for makes stale.

    Args:
        links: In the order of the stages, so that what reaches a dataset is complete when its own links are followed.
        asked: Where to begin.
        events: The ledger the links look into.
        within: Only these datasets; None for all.

    Returns:
        All partitions that must run, those asked for included.
    """
    wanted: dict[str, dict[str, str]] = {dataset: dict(keys) for dataset, keys in asked.items()}
    for link in links:
        if within is not None and not {link.above, link.below} <= set(within):
            continue
        above = asked.get(link.above, {}) if link.asked_only else wanted.get(link.above, {})
        if above:
            below = wanted.setdefault(link.below, {})
            for key, cause in link.reach(events, tuple(above)).items():
                below.setdefault(key, f"reads {link.above} {cause}".rstrip())
    return {dataset: keys for dataset, keys in wanted.items() if keys}


def cut(stage: Stage, wanted: Wanted) -> list[PlannedRun]:
    """Cut what must run of a stage into runs, in the order in which they must run.

    Args:
        stage: The stage.
        wanted: What must run, of this stage and of others.

    Returns:
        The runs.
    """
    needed: dict[str, list[str]] = defaultdict(list)
    for dataset in stage.datasets:
        for key in wanted.get(dataset, {}):
            needed[key].append(dataset)
    together: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for key, names in needed.items():
        together[tuple(names)].append(key)
    runs = []
    # What begins with an earlier dataset of the stage goes first: a later one may read its other partitions, too.
    for datasets in sorted(together, key=lambda names: [stage.datasets.index(name) for name in names]):
        spans = [()] if stage.grain is None else [span.keys for span in contiguous(together[datasets], stage.grain)]
        for keys in spans:
            reasons = Counter(wanted[datasets[0]][key] for key in keys or (WHOLE_TABLE,))
            runs.append(PlannedRun(stage=stage, datasets=datasets, keys=keys, reasons=reasons))
    return runs


class Past:
    """What publications of each dataset have cost so far."""

    def __init__(self, events: EventLog) -> None:
        self._events = events
        self._held: dict[str, list[Entry]] = {}

    def estimate(self, run: PlannedRun) -> Estimate:
        """Estimate a run; unknown when one of its datasets has never been published."""
        estimates = [self._one(dataset, run.keys or (WHOLE_TABLE,)) for dataset in run.datasets]
        rows = [each.rows for each in estimates if each.rows is not None]
        seconds = [each.seconds for each in estimates if each.seconds is not None]
        known = len(rows) == len(seconds) == len(estimates)
        return Estimate(rows=sum(rows) if known else None, seconds=sum(seconds) if known else None)

    def _one(self, dataset: str, keys: Collection[str]) -> Estimate:
        if dataset not in self._held:
            self._held[dataset] = self._events.history(dataset)
        history = self._held[dataset]
        if not history:
            return Estimate(rows=None, seconds=None)
        newest = {entry.partition: entry.rows_out for entry in history}
        usual = int(median(newest.values()))
        rows = sum(newest.get(key, usual) for key in keys)
        seconds = {entry.version: entry.seconds for entry in history}
        # A commit costs something whatever is in it, and something for each row.
        least = min(seconds.values())
        written = sum(entry.rows_out for entry in history)
        per_row = sum(each - least for each in seconds.values()) / written if written else 0.0
        return Estimate(rows=rows, seconds=least + per_row * rows)
