"""Ads are displayed in the visits, land by hour of arrival, and change nothing else in the simulation."""

from __future__ import annotations

from pathlib import Path

import oracle
from blogdata.simulator.faults import LINE_FAULTS, FaultRates
from blogdata.simulator.landing import simulate
from blogdata.simulator.spec import SimulationSpec
from simulated import assert_figures_equal_the_recount

EVERY_FAULT = FaultRates(
    **{name: 0.03 for name in LINE_FAULTS if name != "huge_line"}, huge_line=0.002, empty_hour=0.06, missing_hour=0.06
)


def test_the_truth_of_every_fault_equals_recounts(tmp_path: Path) -> None:
    spec = SimulationSpec(days=2, visits_per_day=12000, seed=11, faults=EVERY_FAULT, part_lines=40, ads=True)
    truth = simulate(spec, tmp_path).ads
    assert truth is not None
    recount = assert_figures_equal_the_recount(truth.hours, truth.display_hours, oracle.count(tmp_path, "ads"))
    assert recount.reasons().keys() == {
        "empty_line", "not_utf8", "too_large", "truncated", "not_json",
        *(f"{what}:{name}" for what in ("missing_field", "wrong_type") for name in oracle.DISPLAY_REQUIRED),
        "invalid_time:display_time", "impossible_time",
    }  # fmt: skip
    assert {hour.state for hour in truth.hours} == {"landed", "empty", "missing"}
    assert truth.total("conflicts") > 20
    assert truth.total("duplicates") > 2 * truth.total("conflicts") * 0.8
    assert max(file.read_bytes().count(b"\n") for file in tmp_path.glob("ads/*/*/ads-*.json")) == 40
