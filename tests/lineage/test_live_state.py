"""The streams with a state publish what plain Python computes, once, through a kill: ads, and sessions.

Patterns: Dynamic Joiner, Stateful Sessionizer. The suite streams the patterns alone, in any order
(`tests/data_value/test_dynamic_joiner.py`, `tests/data_value/test_stateful_sessionizer.py`).
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from assets.streams import live_ads, live_sessions
from blogdata.evidence import ledger
from blogdata.evidence.events import appended
from blogdata.patterns.error_management.checkpointer import Checkpoint, checkpoints
from blogdata.simulator import landing as simulator
from blogdata.simulator.faults import LINE_FAULTS, FaultRates
from blogdata.simulator.spec import SimulationSpec
from laws.stepping import Probe
from lineage import brute_force, live
from lineage.conftest import Deploy
from lineage.deployment import Deployment
from quality.contracts import STREAMED
from quality.contracts.sessions import SESSIONS

pytestmark = pytest.mark.campaign
WITH_ADS, OF_VISITORS = "silver.visits_with_ads_live", "silver.sessions_live"
STREAMS = {WITH_ADS: live_ads.STREAM, OF_VISITORS: live_sessions.STREAM}
ROWS_AFTER = {WITH_ADS: 1, OF_VISITORS: 2}
"""Batches after which rows come: sessions are let go of once the watermark has moved."""
# Lines that are hours late are in no stream; one of them is landed on purpose.
RATES = {**dict.fromkeys(LINE_FAULTS, 0.05), "huge_line": 0.0, "late": 0.0}
SPEC = SimulationSpec(days=1, visits_per_day=2500, seed=8, faults=FaultRates(**RATES), ads=True)
DAY, NEXT = "2026-01-05", ("2026-01-05T10", "2026-01-05T11")
HOURS = 5
"""Hours that land before a tick."""
PAIR = ("event_hour", "side", "visit_id", "event_time", "page", "display_time", "campaign")
SESSION = tuple(column.name for column in SESSIONS.columns if column.name not in ("session_id", "referral"))
Rows = Counter[tuple[Any, ...]]


def view(time: str, user: str, ad: str | None = None) -> bytes:
    visit = {"visit_id": f"v-{user}", "event_time": f"{DAY}T{time}Z", "user_id": user, "page": "/p"}
    return json.dumps({**visit, "keep_private": False, "context": {"ad_id": ad}}).encode()


@pytest.fixture(scope="module")
def world(deploy: Deploy, tmp_path_factory: pytest.TempPathFactory) -> Deployment:
    """Ten hours in two ticks, the second one killed; with a late page view, and rows after which nothing waits."""
    source = tmp_path_factory.mktemp("source")
    simulator.simulate(SPEC, source)
    made = deploy("live-state")
    for begin in (0, HOURS):
        for hour in range(begin, begin + HOURS):
            for table in ("visits", "ads"):
                folder = source / table / f"date={DAY}" / f"hour={hour:02d}"
                shutil.copytree(folder, made.folder(f"{DAY}T{hour:02d}", table))
        if begin:
            made.land(NEXT[0], [view("02:00:00", "late"), view("10:05:00", "one")])
            made.land(NEXT[1], [view("11:50:00", "last", "ad")])
            display = {"ad_id": "ad", "page": "/p", "visit_id": "v-last", "campaign": "c"}
            lines = [json.dumps({**display, "display_time": f"{DAY}T11:45:00Z"}).encode()]
            made.land(NEXT[1], lines, name="ads.json", table="ads")
        files = sorted(made.landing.glob("*/date=*/hour=*/*.json"), key=lambda file: (file.parts[-3:-1], file.parts))
        for at, file in enumerate(files):
            os.utime(file, (1_767_600_000 + at,) * 2)
        for dataset, stream in STREAMS.items():
            if begin:
                killed(made, dataset, tmp_path_factory.mktemp("probe"))
            live.tick(made, stream)
    return made


def killed(made: Deployment, dataset: str, folder: Path) -> None:
    """Kill a tick with -9 when its rows are written and not committed; its query continues in the server."""
    number = max(planned.number for planned in newest(made, dataset).batches()) + ROWS_AFTER[dataset]
    probe = Probe(folder / dataset / str(number))
    probe.hold("written")
    client = live.ticking(made, folder, STREAMS[dataset].name)
    assert probe.reached("written", client.is_working)
    client.kill()
    probe.release()


def newest(made: Deployment, dataset: str) -> Checkpoint:
    return checkpoints(made.settings.checkpoints, STREAMS[dataset].name)[-1]


def streamed(made: Deployment, dataset: str, columns: tuple[str, ...]) -> Rows:
    found = made.rows(dataset, *columns)
    return Counter(tuple(tuple(value) if isinstance(value, list) else value for value in row) for row in found)


def pairs(made: Deployment) -> Rows:
    def row(pair: brute_force.Pair) -> tuple[Any, ...]:
        event, display = pair.event or {}, pair.display or {}
        visit = (event or display)["visit_id"]
        return (
            pair.hour,
            pair.side,
            visit,
            pair.event_time,
            event.get("page"),
            pair.display_time,
            display.get("campaign"),
        )

    visits, ads = (brute_force.read(made.landing, table) for table in ("visits", "ads"))
    return Counter(map(row, brute_force.pairs(visits, ads)))


def completed(made: Deployment) -> Rows:
    def row(one: brute_force.Session) -> tuple[Any, ...]:
        values = {
            "event_hour": one.hour,
            "user_id": one.user,
            "started_at": one.started,
            "ended_at": one.ended,
            "pages": len(one.pages),
            "entry_page": one.pages[0],
            "exit_page": one.pages[-1],
            "keep_private": one.private,
            "first_pages": one.pages[:5],
            "is_completed": True,
            "new_pages": one.new,
        }
        return tuple(values[name] for name in SESSION)

    found = brute_force.sessions(brute_force.read(made.landing), until=NEXT[-1])
    return Counter(row(one) for one in found if one.completed)


def late(made: Deployment, since: int = 0) -> int:
    """Sum the page views that came too late for a session, over the commits after a version."""
    commits = [commit for commit in appended(made.lake, OF_VISITORS) if commit.version > since]
    return sum(entry.reasons["late"] for commit in commits for entry in commit.entries.values())


def behind(made: Deployment) -> int:
    """Count the lines of the second tick behind the watermark; most of them repeat lines of the first."""
    ticks: list[list[datetime]] = [[], []]
    for line in brute_force.read(made.landing).all:
        if line.verdict.time is not None and not line.verdict.reasons:
            ticks[line.arrival_hour >= f"{DAY}T{HOURS:02d}"].append(line.verdict.time)
    return sum(time <= max(ticks[0]) - timedelta(hours=1) for time in ticks[1])


def problems(made: Deployment) -> list[str]:
    lines = [line for name in STREAMS for line in ledger.audit(made.lake, made.events, STREAMED[name])]
    assert lines
    return [line.problem for line in lines if line.problem]


def test_streamed_pairs_are_those_of_plain_python(world: Deployment) -> None:
    found = streamed(world, WITH_ADS, PAIR)
    assert found == pairs(world)
    assert {side for _, side, *_ in found} == {"both", "event", "display"}


def test_streamed_sessions_are_those_of_plain_python(world: Deployment) -> None:
    found, expected = streamed(world, OF_VISITORS, SESSION), completed(world)
    assert found - expected == Counter()
    # Only plain Python has the session that came too late.
    ((alone, once),) = (expected - found).items()
    assert ("late" in alone, once, len(found) > 100) == (True, 1, True)
    ids = world.rows(OF_VISITORS, "session_id")
    assert len(set(ids)) == len(ids)


def test_all_batches_are_done_late_rows_are_counted_and_the_ledger_adds_up(world: Deployment) -> None:
    assert all(planned.committed for name in STREAMS for planned in newest(world, name).batches())
    assert late(world) == behind(world) > 0
    assert problems(world) == []


def test_a_new_checkpoint_publishes_nothing_twice(world: Deployment) -> None:
    version, before = world.lake.version(OF_VISITORS), streamed(world, WITH_ADS, PAIR)
    assert version is not None
    for stream in STREAMS.values():
        live.tick(world, stream, renew=True)
    assert streamed(world, WITH_ADS, PAIR) == before
    # Read together with all others, nothing is late.
    assert streamed(world, OF_VISITORS, SESSION) == completed(world)
    assert late(world, since=version) == 0
    assert problems(world) == []
