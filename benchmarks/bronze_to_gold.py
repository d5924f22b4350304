"""From the landing zone to gold: the platform compared with one hand-written script, and with DuckDB.

Three simulated days land: visits, ads, users and devices. `blogdata run` publishes them in a new deployment, with
audits, accounts and lineage. Without these, the same tables by the same rules (:mod:`benchmarks.straight_sql`) are
computed by :mod:`benchmarks.straight_script` on the same Spark server, and by :mod:`benchmarks.duckdb_job` in a process
that may use as much memory. Every table of both lakes is compared with the platform's.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import median

from benchmarks import same
from benchmarks.deployment import Bench, Deployment, RunFailed
from benchmarks.measure import Case, Peer, Size, interleaved, ratio, say
from benchmarks.straight_script import Script

SIZES = (1_000_000, 5_000_000)
WARM_UP = 30_000
PLATFORM, SCRIPT, DUCKDB = "platform", "straight script", "DuckDB and delta-rs"


def measure(bench: Bench, size: Size) -> Sequence[Case]:
    """Measure at one size, or at both standard ones."""
    if not (find_spec("duckdb") and find_spec("datasketches")):
        sys.exit("DuckDB or datasketches is missing: sh platform/blogdata/deploy/environment.sh bench installs them")
    _case(bench, WARM_UP, 1)
    return [_case(bench, visits, size.rounds) for visits in ([size.visits] if size.visits else SIZES)]


def _case(bench: Bench, visits: int, rounds: int) -> Case:
    landing = bench.simulated(visits, ads=True)
    say(f"{PLATFORM}, {SCRIPT}, {DUCKDB}, {visits:,} visits, {rounds} rounds")
    world = World(bench, landing)
    seconds = interleaved(
        [
            Peer(name=PLATFORM, prepare=world.new_deployment, run=world.run),
            Peer(name=SCRIPT, prepare=partial(world.new_lake, SCRIPT), run=world.script),
            Peer(name=DUCKDB, prepare=partial(world.new_lake, DUCKDB), run=world.duckdb),
        ],
        rounds,
    )
    ours = world.deployment.settings.lake
    rows = [same.require(bench.spark, ours, lake) for lake in world.lakes.values()]
    facts = {
        **ratio(seconds, PLATFORM, SCRIPT),
        **ratio(seconds, PLATFORM, DUCKDB),
        "rows, equal in all": rows[0],
        "platform's steps (seconds, median)": world.steps(),
    }
    world.deployment.remove()
    for lake in world.lakes.values():
        shutil.rmtree(lake)
    return Case(name=f"{visits:,} visits", seconds=seconds, facts=facts)


class World:
    """The newest deployment of the platform, and the newest lake of each peer."""

    def __init__(self, bench: Bench, landing: Path) -> None:
        self._bench, self._landing = bench, landing
        self._steps: list[Counter[str]] = []
        self.deployment: Deployment
        self.lakes: dict[str, Path] = {}

    def new_deployment(self, number: int) -> None:
        """Make an empty deployment in place of that of the round before."""
        if self._steps:
            self.deployment.remove()
        self.deployment = self._bench.deployment(f"platform-{number}", landing=self._landing)

    def new_lake(self, peer: str, number: int) -> None:
        """Make an empty lake in place of that of the round before."""
        self.lakes[peer] = self._bench.folder(peer)

    def script(self, number: int) -> None:
        """Run the script on the benchmarks' Spark server."""
        Script(self._bench.spark, self._landing, self.lakes[SCRIPT]).run()

    def duckdb(self, number: int) -> None:
        """Run DuckDB in a process of its own, with as much memory as Spark's heap has."""
        memory = self._bench.settings.spark.heap.replace("g", "GiB").replace("m", "MiB")
        words = ("-m", "benchmarks.duckdb_job", str(self._landing), str(self.lakes[DUCKDB]), memory)
        done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RunFailed(f"{' '.join(words)} ended with {done.returncode}: {done.stderr[-2000:].strip()}")

    def run(self, number: int) -> None:
        """Run as `blogdata run` does."""
        steps: Counter[str] = Counter()
        for step in self.deployment.run().steps:
            steps[step["dataset"]] += step["seconds"]
        self._steps.append(steps)

    def steps(self) -> dict[str, float]:
        """Return the median time of each dataset's steps."""
        return {name: round(median(steps[name] for steps in self._steps), 2) for name in self._steps[0]}
