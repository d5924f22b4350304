"""Simulated landing zones, recounted without the simulator."""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from pathlib import Path

import oracle
from blogdata.simulator.spec import LINE_FAULTS, FaultRates
from blogdata.simulator.truth import Truth

EVERY_FAULT = FaultRates(
    **{name: 0.02 for name in LINE_FAULTS if name not in ("late", "huge_line")},
    late=0.08,
    huge_line=0.0005,
    empty_hour=0.06,
    missing_hour=0.06,
)


class Killed(Exception):
    """Simulates the death of the process."""


def assert_truth_equals_the_recount(truth: Truth, landing: Path) -> oracle.OracleTruth:
    """Assert that the simulator's counts by arrival hour and event hour equal those of plain Python."""
    recount = oracle.count(landing)
    landed = [hour for hour in truth.hours if hour.state != "missing"]
    assert [hour.arrival_hour for hour in landed] == list(recount.arrivals)
    for hour in landed:
        counted = recount.arrivals[hour.arrival_hour]
        for figure in ("lines", "bytes", "valid", "dead", "late", "reasons", "by_event_hour"):
            assert getattr(counted, figure) == getattr(hour, figure), (hour.arrival_hour, figure)
    assert [asdict(hour) for hour in truth.event_hours] == [
        vars(recount.event_hours[key]) for key in sorted(recount.event_hours)
    ]
    return recount


def contents(landing: Path) -> dict[str, str]:
    return {
        str(path.relative_to(landing)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(landing.rglob("*"))
        if path.is_file()
    }
