"""Ads are displayed in the visits, land by hour of arrival, and change nothing else in the simulation."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import oracle
from blogdata.simulator.faults import LINE_FAULTS, FaultRates
from blogdata.simulator.landing import simulate
from blogdata.simulator.spec import SimulationSpec
from blogdata.simulator.truth import AdsTruth
from simulated import assert_figures_equal_the_recount

EVERY_FAULT = FaultRates(
    **{name: 0.03 for name in LINE_FAULTS if name != "huge_line"}, huge_line=0.002, empty_hour=0.06, missing_hour=0.06
)
BELONGS = timedelta(minutes=30)


def simulated(landing: Path, spec: SimulationSpec) -> AdsTruth:
    truth = simulate(spec, landing)
    assert truth.ads is not None
    return truth.ads


def test_the_truth_of_every_fault_equals_recounts(tmp_path: Path) -> None:
    spec = SimulationSpec(days=2, visits_per_day=12000, seed=11, faults=EVERY_FAULT, part_lines=40, ads=True)
    truth = simulated(tmp_path, spec)
    recount = assert_figures_equal_the_recount(truth.hours, truth.display_hours, oracle.count(tmp_path, "ads"))
    assert recount.reasons().keys() == {
        "empty_line", "not_utf8", "too_large", "truncated", "several_objects", "not_json",
        *(f"{what}:{name}" for what in ("missing_field", "wrong_type") for name in oracle.DISPLAY_REQUIRED),
        "invalid_time:display_time", "impossible_time",
    }  # fmt: skip
    assert {hour.state for hour in truth.hours} == {"landed", "empty", "missing"}
    assert truth.total("conflicts") > 20
    assert truth.total("duplicates") > 2 * truth.total("conflicts") * 0.8
    assert max(file.read_bytes().count(b"\n") for file in tmp_path.glob("ads/*/*/ads-*.json")) == 40


def test_displays_and_events_belong_together_as_counted(tmp_path: Path) -> None:
    """By the contract's rule, recomputed from the landed files: same visit and ad, at most half an hour before."""
    spec = SimulationSpec(days=2, visits_per_day=3000, seed=3, faults=FaultRates.none(late=0.05), ads=True)
    truth = simulated(tmp_path, spec)
    displays: Times = defaultdict(list)
    for arrived, display in rows(tmp_path, "ads"):
        time = oracle.iso_time(display["display_time"])
        assert time is not None
        assert timedelta(0) <= arrived + timedelta(hours=1) - time <= timedelta(hours=2, minutes=2)
        displays[display["visit_id"], display["ad_id"]].append(time)
    events: Times = defaultdict(list)
    for _, event in rows(tmp_path, "visits"):
        time = oracle.iso_time(event["event_time"])
        assert time is not None
        if event["context"]["ad_id"] is not None:
            events[event["visit_id"], event["context"]["ad_id"]].append(time)

    without_display = alone(events, displays, lambda event, display: event - display)
    without_event = alone(displays, events, lambda display, event: event - display)
    totals = {
        name: sum(getattr(hour, name) for hour in truth.matches)
        for name in ("displays", "without_event", "events", "without_display")
    }
    assert totals == {
        "displays": sum(map(len, displays.values())),
        "without_event": without_event,
        "events": sum(map(len, events.values())),
        "without_display": without_display,
    }
    assert 0 < without_display < totals["events"] / 3
    assert 0 < without_event < totals["displays"]
    assert any(len(times) > 1 for times in displays.values())


Times = dict[tuple[str, str], list[datetime]]


def alone(moments: Times, others: Times, apart: Callable[[datetime, datetime], timedelta]) -> int:
    return sum(
        not any(timedelta(0) <= apart(time, other) <= BELONGS for other in others.get(key, ()))
        for key, times in moments.items()
        for time in times
    )


def rows(landing: Path, table: str) -> list[tuple[datetime, dict[str, Any]]]:
    return [
        (datetime.strptime(f"{hour}+0000", "%Y-%m-%dT%H%z"), json.loads(raw))
        for hour, folder in oracle.arrival_folders(landing, table)
        for raw, _ in oracle.lines_of(folder)
    ]
