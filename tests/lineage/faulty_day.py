"""A simulated day with every fault: the platform's tables, the simulator's truth and plain Python's counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import oracle
from blogdata.cli.outcome import Outcome
from blogdata.simulator.faults import LINE_FAULTS, FaultRates
from blogdata.simulator.spec import SimulationSpec
from blogdata.simulator.truth import Truth
from lineage import brute_force, costs
from lineage.brute_force import Lines
from lineage.costs import Costs
from lineage.deployment import Deployment
from oracle import OracleTruth

# Huge lines have five megabytes each, so there is one; every other fault has a rate of five per cent.
RATES = {**dict.fromkeys(LINE_FAULTS, 0.05), "huge_line": 0.0008, "empty_hour": 0.05, "missing_hour": 0.05}
SPEC = SimulationSpec(days=1, visits_per_day=1500, seed=19, faults=FaultRates(**RATES))
DAY = "2026-01-05"
MISSING, EMPTY = f"{DAY}T09", f"{DAY}T11"


@dataclass(frozen=True)
class World:
    """A simulated day after its runs, with all independent counts."""

    deployment: Deployment
    truth: Truth
    counted: OracleTruth
    lines: Lines
    outcomes: Sequence[Outcome]
    costs: dict[str, Costs]

    @classmethod
    def of(cls, deployment: Deployment, jobs: Path) -> World:
        """Simulate the day, count its lines, and run it: all but the last hour, then that hour with its late rows."""
        truth = deployment.simulate(SPEC)
        counted, lines = oracle.count(deployment.landing), brute_force.read(deployment.landing)
        outcomes, found = [], {}
        hours = {path: path.with_name(f".{path.name}") for path in deployment.landing.glob(f"*/date={DAY}/hour=23")}
        for path, hidden in hours.items():
            path.rename(hidden)
        for run in ("a day", "an hour"):
            with costs.counting() as counting:
                outcomes.append(deployment.run())
            found[run] = costs.of_newest_run(deployment, counting, jobs)
            for path, hidden in hours.items():
                if hidden.exists():
                    hidden.rename(path)
        return cls(deployment=deployment, truth=truth, counted=counted, lines=lines, outcomes=outcomes, costs=found)
