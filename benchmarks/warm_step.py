"""A warm step: one day of one small dataset is published again, audited, by a whole Dagster run on the warm server."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from benchmarks.deployment import Bench
from benchmarks.measure import Case, Peer, Size, interleaved, say

VISITS = 3_000
DATASET = "gold.page_stats"
REPEATS, WARM_UPS = 5, 3


def measure(bench: Bench, size: Size) -> Sequence[Case]:
    """Measure with one day of this many visits."""
    visits = size.visits or VISITS
    deployment = bench.deployment("warm", landing=bench.simulated(visits, days=1))
    deployment.run()
    say(f"a warm step of {DATASET}, {size.rounds * REPEATS} rounds")
    steps: list[float] = []
    again = Peer(name="run", run=lambda number: steps.append(deployment.run_again(DATASET).steps[0]["seconds"]))
    seconds = interleaved([again], size.rounds * REPEATS, warm_ups=WARM_UPS)
    deployment.remove()
    facts = {"step (seconds, median)": round(median(steps[WARM_UPS:]), 2)}
    return [Case(name=f"{DATASET}, {visits:,} visits", seconds=seconds, facts=facts)]
