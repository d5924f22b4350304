"""(a) From the landing zone to gold: the platform against one straight hand-written script."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import same
from benchmarks.deployment import Bench, Deployment
from benchmarks.measure import Case, Peer, Result, Size, Target, interleaved, ratio, say
from benchmarks.straight_script import Script

SIZES = (1_000_000, 5_000_000)
WARM_UP = 30_000
PLATFORM, SCRIPT = "platform", "straight script"


def measure(bench: Bench, size: Size) -> Result:
    """Measure at one size, or at both standard ones."""
    _case(bench, WARM_UP, 1)
    sizes = [size.visits] if size.visits else SIZES
    cases = [_case(bench, visits, size.rounds) for visits in sizes]
    largest = {case.name: case for case in cases}.get(_name(SIZES[-1]))
    target = Target(
        what=f"platform / straight script at {_name(SIZES[-1])}",
        bound="at most",
        limit=1.15,
        found=largest.ratios[0].value if largest else None,
    )
    return Result(letter="a", title="Bronze to gold", cases=cases, targets=[target])


def _name(visits: int) -> str:
    return f"{visits:,} visits"


def _case(bench: Bench, visits: int, rounds: int) -> Case:
    landing = bench.simulated(visits)
    say(f"bronze to gold, {_name(visits)}, {rounds} rounds")
    platform = PlatformPeer(bench, landing)
    script = ScriptPeer(bench, landing)
    seconds = interleaved([platform.peer(), script.peer()], rounds)
    rows = same.require(bench.spark, platform.lake, script.lake)
    platform.clear()
    script.clear()
    facts = {
        "rows": rows,
        "equal": "every table row for row",
        "platform steps (seconds, median)": platform.steps(),
    }
    return Case(name=_name(visits), seconds=seconds, ratios=[ratio(seconds, PLATFORM, SCRIPT)], facts=facts)


class PlatformPeer:
    """`blogdata run` in a new deployment each round."""

    def __init__(self, bench: Bench, landing: Path) -> None:
        self._bench = bench
        self._landing = landing
        self._deployment: Deployment | None = None
        self._steps: list[Sequence[dict[str, Any]]] = []

    def peer(self) -> Peer:
        """Give it to be timed."""
        return Peer(name=PLATFORM, prepare=self._prepare, run=self._run)

    @property
    def lake(self) -> Path:
        """The lake of the last round."""
        assert self._deployment is not None
        return self._deployment.settings.lake

    def steps(self) -> dict[str, float]:
        """Give the median time of each dataset's steps."""
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


class ScriptPeer:
    """The hand-written script, into a new folder each round."""

    def __init__(self, bench: Bench, landing: Path) -> None:
        self._bench = bench
        self._landing = landing
        self.lake = Path()

    def peer(self) -> Peer:
        """Give it to be timed."""
        return Peer(name=SCRIPT, prepare=self._prepare, run=self._run)

    def clear(self) -> None:
        """Remove the last round's lake."""
        if self.lake.name:
            shutil.rmtree(self.lake, ignore_errors=True)

    def _prepare(self, number: int) -> None:
        self.clear()
        self.lake = self._bench.folder(f"script-{number}")

    def _run(self, number: int) -> None:
        Script(self._bench.spark, self._landing, self.lake).run()
