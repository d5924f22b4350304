"""(e) Another engine: the same job with DuckDB and delta-rs, in one process without Spark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchmarks.deployment import Bench, RunFailed
from benchmarks.measure import Case, Result, Size
from benchmarks.peers import compared

STANDARD_VISITS = 1_000_000
WARM_UP = 30_000


def measure(bench: Bench, size: Size) -> Result:
    """Measure at one size; there is no target: on one machine an engine without a cluster's overhead wins."""
    _case(bench, WARM_UP, 1)
    return Result(letter="e", title="Another engine", cases=[_case(bench, size.visits or STANDARD_VISITS, size.rounds)])


def _case(bench: Bench, visits: int, rounds: int) -> Case:
    # DuckDB may use as much memory as Spark's heap.
    memory = bench.settings.spark.heap.replace("g", "GiB").replace("m", "MiB")
    return compared(bench, visits, rounds, "DuckDB and delta-rs", lambda landing, lake: _process(landing, lake, memory))


def _process(landing: Path, lake: Path, memory: str) -> None:
    # A separate process: native libraries in one process share their allocator's errors, too.
    command = [sys.executable, "-m", "benchmarks.duckdb_job", str(landing), str(lake), memory]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RunFailed(
            what=f"the job ended with {done.returncode}: {done.stderr[-2000:].strip()}",
            where=" ".join(command[1:]),
            next_step="run that command by itself to see more",
        )
