"""From the landing zone to gold: the platform compared with one hand-written script.

Three simulated days land: visits, ads, users and devices. `blogdata run` publishes them in a new deployment, with
audits, accounts and lineage; :mod:`benchmarks.straight_script` computes the same tables by the same rules on the same
Spark server, without. Every table of both lakes is compared.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from benchmarks import same
from benchmarks.deployment import Bench, Deployment
from benchmarks.measure import Case, Peer, Size, interleaved, ratio, say
from benchmarks.straight_script import Script

SIZES = (1_000_000, 5_000_000)
WARM_UP = 30_000
PLATFORM, SCRIPT = "platform", "straight script"


def measure(bench: Bench, size: Size) -> Sequence[Case]:
    """Measure at one size, or at both standard ones."""
    _case(bench, WARM_UP, 1)
    return [_case(bench, visits, size.rounds) for visits in ([size.visits] if size.visits else SIZES)]


def _case(bench: Bench, visits: int, rounds: int) -> Case:
    landing = bench.simulated(visits, ads=True)
    say(f"{PLATFORM} and {SCRIPT}, {visits:,} visits, {rounds} rounds")
    world = World(bench, landing)
    seconds = interleaved(
        [
            Peer(name=PLATFORM, prepare=world.new_deployment, run=world.run),
            Peer(name=SCRIPT, prepare=world.new_lake, run=lambda _: Script(bench.spark, landing, world.lake).run()),
        ],
        rounds,
    )
    facts = {
        **ratio(seconds, PLATFORM, SCRIPT),
        "rows, equal in both": same.require(bench.spark, world.deployment.settings.lake, world.lake),
        "platform's steps (seconds, median)": world.steps(),
    }
    world.deployment.remove()
    shutil.rmtree(world.lake)
    return Case(name=f"{visits:,} visits", seconds=seconds, facts=facts)


class World:
    """The newest deployment of the platform, and the newest lake of the script."""

    def __init__(self, bench: Bench, landing: Path) -> None:
        self._bench, self._landing = bench, landing
        self._steps: list[Counter[str]] = []
        self.deployment: Deployment
        self.lake: Path

    def new_deployment(self, number: int) -> None:
        """Make an empty deployment in place of that of the round before."""
        if self._steps:
            self.deployment.remove()
        self.deployment = self._bench.deployment(f"platform-{number}", landing=self._landing)

    def new_lake(self, number: int) -> None:
        """Make an empty lake in place of that of the round before."""
        self.lake = self._bench.folder("script")

    def run(self, number: int) -> None:
        """Run as `blogdata run` does."""
        steps: Counter[str] = Counter()
        for step in self.deployment.run().steps:
            steps[step["dataset"]] += step["seconds"]
        self._steps.append(steps)

    def steps(self) -> dict[str, float]:
        """Return the median time of each dataset's steps."""
        return {name: round(median(steps[name] for steps in self._steps), 2) for name in self._steps[0]}
