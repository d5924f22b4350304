"""A simulated day with every fault, as the platform, the simulator and plain Python know it."""

from __future__ import annotations

from dataclasses import dataclass

import oracle
from blogdata.outcome import Outcome
from lineage import brute_force
from lineage.brute_force import Lines
from lineage.deployment import Deployment
from oracle import OracleTruth
from simulator.faults import LINE_FAULTS, FaultRates
from simulator.spec import SimulationSpec
from simulator.truth import Truth

# Five megabytes each, so one of them has to do; every other fault comes at five per cent.
RATES = {**dict.fromkeys(LINE_FAULTS, 0.05), "huge_line": 0.0008, "empty_hour": 0.05, "missing_hour": 0.05}
SPEC = SimulationSpec(days=1, visits_per_day=1500, seed=19, faults=FaultRates(**RATES))
MISSING, EMPTY = "2026-01-05T09", "2026-01-05T11"


@dataclass(frozen=True)
class World:
    """A simulated day that went through the platform, and what is known of it."""

    deployment: Deployment
    truth: Truth
    counted: OracleTruth
    lines: Lines
    outcome: Outcome

    @classmethod
    def of(cls, deployment: Deployment) -> World:
        """Simulate the day, count its lines, and run it."""
        truth = deployment.simulate(SPEC)
        return cls(
            deployment=deployment,
            truth=truth,
            counted=oracle.count(deployment.landing),
            lines=brute_force.read(deployment.landing),
            outcome=deployment.run(),
        )
