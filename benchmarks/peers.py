"""Compares the platform with another way to the same tables, each round into a new lake."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import same
from benchmarks.deployment import Bench, Deployment
from benchmarks.measure import Case, Peer, interleaved, ratio, say

PLATFORM = "platform"


def compared(bench: Bench, visits: int, rounds: int, name: str, job: Callable[[Path, Path], object]) -> Case:
    """Time the platform and another way from a landing zone to gold, and compare their tables.

    Args:
        bench: The environment.
        visits: Size of the simulated landing zone.
        rounds: How often each of them runs.
        name: Name of the other way.
        job: The other way: from a landing zone to an empty folder, its lake.

    Returns:
        The measurements.

    Raises:
        ResultsDiffer: Their tables differ.
    """
    landing = bench.simulated(visits, ads=True)
    say(f"{PLATFORM} and {name}, {visits:,} visits, {rounds} rounds")
    platform = PlatformPeer(bench, landing)
    other = FolderPeer(bench, name, lambda lake: job(landing, lake))
    seconds = interleaved([platform.peer(), other.peer()], rounds)
    rows = same.require(bench.spark, platform.lake, other.lake)
    facts = {
        "rows": rows,
        "equal": "every table row for row",
        "platform steps (seconds, median)": platform.steps(),
    }
    platform.clear()
    other.clear()
    return Case(name=f"{visits:,} visits", seconds=seconds, ratios=[ratio(seconds, PLATFORM, name)], facts=facts)


class PlatformPeer:
    """`blogdata run` in a new deployment each round."""

    def __init__(self, bench: Bench, landing: Path) -> None:
        self._bench = bench
        self._landing = landing
        self._deployment: Deployment | None = None
        self._steps: list[Sequence[dict[str, Any]]] = []

    def peer(self) -> Peer:
        """Return the run to be timed."""
        return Peer(name=PLATFORM, prepare=self._prepare, run=self._run)

    @property
    def lake(self) -> Path:
        """The lake of the last round."""
        assert self._deployment is not None
        return self._deployment.settings.lake

    def steps(self) -> dict[str, float]:
        """Return the median time of each dataset's steps."""
        times: dict[str, list[float]] = {}
        for steps in self._steps:
            of_round: dict[str, float] = {}
            for step in steps:
                of_round[step["dataset"]] = of_round.get(step["dataset"], 0.0) + step["seconds"]
            for dataset, seconds in of_round.items():
                times.setdefault(dataset, []).append(seconds)
        return {dataset: round(median(found), 2) for dataset, found in times.items()}

    def clear(self) -> None:
        """Remove the last round's deployment."""
        if self._deployment is not None:
            self._deployment.remove()
        self._deployment = None

    def _prepare(self, number: int) -> None:
        self.clear()
        self._deployment = self._bench.deployment(f"platform-{number}", landing=self._landing)

    def _run(self, number: int) -> None:
        assert self._deployment is not None
        self._steps.append(self._deployment.run().steps)


class FolderPeer:
    """A job whose lake is a new folder each round."""

    def __init__(self, bench: Bench, name: str, job: Callable[[Path], object]) -> None:
        self._bench = bench
        self._name = name
        self._job = job
        self.lake = Path()

    def peer(self) -> Peer:
        """Return the job to be timed."""
        return Peer(name=self._name, prepare=self._prepare, run=lambda number: self._job(self.lake))

    def clear(self) -> None:
        """Remove the last round's lake."""
        if self.lake.name:
            shutil.rmtree(self.lake)
        self.lake = Path()

    def _prepare(self, number: int) -> None:
        self.clear()
        self.lake = self._bench.folder(f"other-{number}")
