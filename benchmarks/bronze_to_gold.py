"""(a) From the landing zone to gold: the platform compared with one hand-written script."""

from __future__ import annotations

from benchmarks.deployment import Bench
from benchmarks.measure import Case, Result, Size, Target
from benchmarks.peers import compared
from benchmarks.straight_script import Script

LIMITS = {1_000_000: 1.2, 5_000_000: 0.9}
"""Standard sizes, each with its target."""
WARM_UP = 30_000


def measure(bench: Bench, size: Size) -> Result:
    """Measure at one size, or at both standard ones."""
    _case(bench, WARM_UP, 1)
    sizes = [size.visits] if size.visits else LIMITS
    cases = {visits: _case(bench, visits, size.rounds) for visits in sizes}
    targets = [
        Target(
            what=f"platform / straight script at {visits:,} visits",
            bound="at most",
            limit=limit,
            found=cases[visits].ratios[0].value if visits in cases else None,
        )
        for visits, limit in LIMITS.items()
    ]
    return Result(letter="a", title="Bronze to gold", cases=list(cases.values()), targets=targets)


def _case(bench: Bench, visits: int, rounds: int) -> Case:
    return compared(
        bench, visits, rounds, "straight script", lambda landing, lake: Script(bench.spark, landing, lake).run()
    )
