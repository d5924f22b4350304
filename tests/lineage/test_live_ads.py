"""Dynamic Joiner: the stream joins visits and ads as the batch does, in any order, once, though it is interrupted."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from assets.streams.live_ads import STREAM
from blogdata.simulator import landing_zone as simulator
from blogdata.simulator.spec import LINE_FAULTS, FaultRates, SimulationSpec
from lineage import brute_force, live
from lineage.conftest import Deploy
from lineage.deployment import Deployment

pytestmark = pytest.mark.campaign
LIVE = "silver.visits_with_ads_live"
# Late visits are hours late; up to an hour is not late here.
RATES = {**dict.fromkeys(LINE_FAULTS, 0.05), "huge_line": 0.0, "late": 0.03, "empty_hour": 0.05, "missing_hour": 0.05}
SPEC = SimulationSpec(days=1, visits_per_day=4000, seed=8, faults=FaultRates(**RATES), ads=True)
TICKS, HOURS, BEHIND = 2, 8, 2
"""Ticks, hours of visits that land before each, and how many hours later displays land than visits of the same hour."""
COLUMNS = ("event_hour", "side", "visit_id", "event_time", "page", "display_time", "campaign")


@pytest.fixture(scope="module")
def world(deploy: Deploy, tmp_path_factory: pytest.TempPathFactory) -> Deployment:
    """A simulated day, landed eight hours at a time, a tick for each; the last is interrupted while publishing."""
    source = tmp_path_factory.mktemp("source")
    simulator.simulate(SPEC, source)
    deployment = deploy("live-ads")
    for tick in range(TICKS):
        for hour in range(tick * HOURS, (tick + 1) * HOURS):
            for table, arrived in (("visits", hour), ("ads", hour - BEHIND)):
                there = source / table / "date=2026-01-05" / f"hour={arrived:02d}"
                if there.is_dir():
                    shutil.copytree(there, deployment.folder(f"2026-01-05T{arrived:02d}", table))
        live.in_order(deployment, lambda file: (int(file.parent.name[5:]) + BEHIND * ("ads" in file.parts), file))
        if tick:
            probe, number = tmp_path_factory.mktemp("probe"), live.planned(deployment, STREAM) + 1
            live.interrupted(deployment, probe, LIVE, number, "committed", STREAM)
        live.tick(deployment, STREAM)
    return deployment


def tick_of(line: brute_force.Line, side: int) -> int:
    """Return the tick before which a line of the visits (0) or displays (1) landed."""
    return (int(line.arrival_hour[11:]) + BEHIND * side) // HOURS


def model(landing: Path) -> tuple[list[brute_force.Pair], int]:
    """Compute the rows that the stream has let go of, and the number of lines that came too late."""
    sides = [brute_force.read(landing, table) for table in ("visits", "ads")]
    kept, late, mark = (brute_force.Lines(), brute_force.Lines()), 0, datetime.min.replace(tzinfo=timezone.utc)
    for tick in range(TICKS):
        newest = []
        for side, lines in enumerate(sides):
            mine = [
                (line, line.verdict.time)
                for line in lines.all
                if line.verdict.time is not None
                and not line.verdict.reasons
                and tick_of(line, side) == tick
                and (side == 1 or brute_force.text(json.loads(line.raw), "ad_id") is not None)
            ]
            newest.append(max(time for _, time in mine))
            late += sum(time <= mark for _, time in mine)
            for line, time in mine:
                if time > mark:
                    kept[side].winners.setdefault((time, *line.verdict.identity), line)
        mark = max(mark, min(newest) - timedelta(hours=1))
    pairs = brute_force.pairs(*kept)
    return [pair for pair in pairs if _is_over(pair, mark)], late


def _is_over(pair: brute_force.Pair, mark: datetime) -> bool:
    if pair.event_time is not None:
        return pair.display_time is not None or pair.event_time < mark
    assert pair.display_time is not None
    return pair.display_time + brute_force.BELONGS < mark


def rows_of(pairs: list[brute_force.Pair]) -> Counter[Any]:
    return Counter(
        (
            pair.hour,
            pair.side,
            (pair.event or pair.display or {})["visit_id"],
            pair.event_time,
            (pair.event or {}).get("page"),
            pair.display_time,
            (pair.display or {}).get("campaign"),
        )
        for pair in pairs
    )


def test_streamed_rows_are_those_of_plain_python(world: Deployment) -> None:
    pairs, late = model(world.landing)
    assert Counter(world.rows(LIVE, *COLUMNS)) == rows_of(pairs)
    assert {pair.side for pair in pairs} == {"both", "event", "display"}
    reasons = live.reasons(world, LIVE)
    assert (reasons["late"], late > 0, reasons["duplicate"] > 0) == (late, True, True)
    assert live.problems(world, [LIVE]) == []


def test_a_new_checkpoint_pairs_nothing_that_was_alone(world: Deployment) -> None:
    version, before = world.lake.version(LIVE), Counter(world.rows(LIVE, *COLUMNS))
    assert version is not None
    live.tick(world, STREAM, renew=True)
    after = world.rows(LIVE, "visit_id", "ad_id", "event_time", "page", "display_time")
    sides: dict[object, set[bool]] = {}
    for visit, ad, event, page, display in after:
        if event is not None:
            sides.setdefault((visit, event, page), set()).add(display is None)
        if display is not None:
            sides.setdefault((visit, ad, display), set()).add(event is None)
    assert [side for side, alone in sides.items() if len(alone) > 1] == []
    assert before <= Counter(world.rows(LIVE, *COLUMNS)), "nothing is published twice"
    assert max(Counter(after).values()) == 1
    assert live.reasons(world, LIVE, since=version)["conflict"] > 0
    assert live.problems(world, [LIVE]) == []
