"""(e) Another engine: the same job by DuckDB and delta-rs, in one process without Spark."""

from __future__ import annotations

import shutil
from pathlib import Path

from benchmarks import same
from benchmarks.bronze_to_gold import PLATFORM, PlatformPeer
from benchmarks.deployment import Bench
from benchmarks.duckdb_job import Job
from benchmarks.measure import Case, Peer, Result, Size, interleaved, ratio, say

STANDARD_VISITS = 1_000_000
WARM_UP = 30_000
DUCKDB = "DuckDB and delta-rs"


def measure(bench: Bench, size: Size) -> Result:
    """Measure at one size; there is no target: on one machine the engine without a cluster's machinery wins."""
    _case(bench, WARM_UP, 1)
    return Result(letter="e", title="Another engine", cases=[_case(bench, size.visits or STANDARD_VISITS, size.rounds)])


def _case(bench: Bench, visits: int, rounds: int) -> Case:
    landing = bench.simulated(visits)
    say(f"another engine, {visits:,} visits, {rounds} rounds")
    platform = PlatformPeer(bench, landing)
    other = DuckdbPeer(bench, landing)
    seconds = interleaved([platform.peer(), other.peer()], rounds)
    rows = same.require(bench.spark, platform.lake, other.lake)
    platform.clear()
    facts = {"rows": rows, "equal": "every table row for row"}
    return Case(name=f"{visits:,} visits", seconds=seconds, ratios=[ratio(seconds, PLATFORM, DUCKDB)], facts=facts)


class DuckdbPeer:
    """The job in this process, into a new folder each round; DuckDB may use as much memory as Spark's heap."""

    def __init__(self, bench: Bench, landing: Path) -> None:
        self._bench = bench
        self._landing = landing
        self.lake = Path()

    def peer(self) -> Peer:
        """Give it to be timed."""
        return Peer(name=DUCKDB, prepare=self._prepare, run=self._run)

    def _prepare(self, number: int) -> None:
        if self.lake.name:
            shutil.rmtree(self.lake)
        self.lake = self._bench.folder(f"duckdb-{number}")

    def _run(self, number: int) -> None:
        memory = self._bench.settings.spark.heap.replace("g", "GiB").replace("m", "MiB")
        Job(self._landing, self.lake, memory=memory).run()
