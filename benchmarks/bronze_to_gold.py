"""(a) From the landing zone to gold: the platform compared with one hand-written script."""

from __future__ import annotations

from benchmarks.deployment import Bench
from benchmarks.measure import Case, Result, Size, Target
from benchmarks.peers import compared
from benchmarks.straight_script import Script

SIZES = (1_000_000, 5_000_000)
WARM_UP = 30_000


def measure(bench: Bench, size: Size) -> Result:
    """Measure at one size, or at both standard ones."""
    _case(bench, WARM_UP, 1)
    sizes = [size.visits] if size.visits else SIZES
    cases = {visits: _case(bench, visits, size.rounds) for visits in sizes}
    largest = cases.get(SIZES[-1])
    target = Target(
        what=f"platform / straight script at {SIZES[-1]:,} visits",
        bound="at most",
        limit=1.15,
        found=largest.ratios[0].value if largest else None,
    )
    return Result(letter="a", title="Bronze to gold", cases=list(cases.values()), targets=[target])


def _case(bench: Bench, visits: int, rounds: int) -> Case:
    return compared(
        bench, visits, rounds, "straight script", lambda landing, lake: Script(bench.spark, landing, lake).run()
    )
