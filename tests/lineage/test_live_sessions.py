"""Stateful Sessionizer: the stream finds the sessions of plain Python, once, though interrupted; counts late rows."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import pytest

from assets.streams.live_sessions import STREAM
from blogdata.simulator import landing_zone as simulator
from blogdata.simulator.spec import LINE_FAULTS, FaultRates, SimulationSpec
from lineage import brute_force, live
from lineage.conftest import Deploy
from lineage.deployment import Deployment
from quality.contracts.sessions import SESSIONS

pytestmark = pytest.mark.campaign
LIVE = "silver.sessions_live"
# Lines that are hours late are not in the stream's sessions; one of them is landed on purpose.
RATES = {**dict.fromkeys(LINE_FAULTS, 0.05), "huge_line": 0.0, "late": 0.0}
SPEC = SimulationSpec(days=1, visits_per_day=2500, seed=8, faults=FaultRates(**RATES))
DAY, NEXT = "2026-01-05", ("2026-01-05T10", "2026-01-05T11")
HOURS = 5
"""Hours that land before a tick."""
COLUMNS = tuple(column.name for column in SESSIONS.columns if column.name not in ("session_id", "referral"))


def view(time: str, user: str, page: str = "/p") -> bytes:
    visit = {"visit_id": f"v-{user}", "event_time": f"{time}Z", "user_id": user, "page": page}
    return json.dumps({**visit, "keep_private": False, "context": None}).encode()


@pytest.fixture(scope="module")
def world(deploy: Deploy, tmp_path_factory: pytest.TempPathFactory) -> Deployment:
    """Ten hours in two ticks, the second one interrupted; with a late page view, and rows that close all sessions."""
    source = tmp_path_factory.mktemp("source")
    simulator.simulate(SPEC, source)
    deployment = deploy("live-sessions")
    for begin in (0, HOURS):
        for hour in range(begin, begin + HOURS):
            shutil.copytree(
                source / "visits" / f"date={DAY}" / f"hour={hour:02d}", deployment.folder(f"{DAY}T{hour:02d}")
            )
        if begin:
            deployment.land(NEXT[0], [view(f"{DAY}T02:00:00", "late"), view(f"{DAY}T10:05:00", "one")])
            deployment.land(NEXT[1], [view(f"{DAY}T11:50:00", "last")])
        live.in_order(deployment)
        if begin:
            # The batch with the rows moves the watermark; the next batch emits the sessions.
            probe, number = tmp_path_factory.mktemp("probe"), live.planned(deployment, STREAM) + 2
            live.interrupted(deployment, probe, LIVE, number, "written", STREAM)
        live.tick(deployment, STREAM)
    return deployment


def rows(deployment: Deployment) -> Counter[tuple[Any, ...]]:
    ids = deployment.rows(LIVE, "session_id")
    assert len(set(ids)) == len(ids)
    sessions = deployment.rows(LIVE, *COLUMNS)
    return Counter(tuple(tuple(value) if isinstance(value, list) else value for value in row) for row in sessions)


def completed(deployment: Deployment) -> Counter[tuple[Any, ...]]:
    sessions = brute_force.sessions(brute_force.read(deployment.landing), until=NEXT[-1])
    return Counter(row_of(session) for session in sessions if session.completed)


def row_of(session: brute_force.Session) -> tuple[Any, ...]:
    pages = session.pages
    times = {"event_hour": session.hour, "started_at": session.started, "ended_at": session.ended}
    shown = {"pages": len(pages), "entry_page": pages[0], "exit_page": pages[-1], "first_pages": pages[:5]}
    private = {"user_id": session.user, "keep_private": session.private}
    values = {**times, **shown, **private, "is_completed": session.completed, "new_pages": session.new}
    return tuple(values[name] for name in COLUMNS)


def behind(deployment: Deployment) -> int:
    """Count the lines of the second tick behind the watermark; most of them repeat lines of the first."""
    ticks: list[list[datetime]] = [[], []]
    for line in brute_force.read(deployment.landing).all:
        if line.verdict.time is not None and not line.verdict.reasons:
            ticks[line.arrival_hour >= f"{DAY}T{HOURS:02d}"].append(line.verdict.time)
    return sum(time <= max(ticks[0]) - timedelta(hours=1) for time in ticks[1])


def test_streamed_sessions_are_those_of_plain_python(world: Deployment) -> None:
    streamed, expected = rows(world), completed(world)
    assert streamed - expected == Counter()
    # Only plain Python has the session that came too late.
    ((alone, once),) = (expected - streamed).items()
    assert ("late" in alone, once, len(streamed) > 50) == (True, 1, True)
    counts = live.reasons(world, LIVE)
    assert (counts["late"], counts["duplicate"] > 0, counts["conflict"] > 0) == (behind(world), True, True)
    assert live.problems(world, [LIVE]) == []


def test_a_new_checkpoint_publishes_no_session_twice(world: Deployment) -> None:
    version = world.lake.version(LIVE)
    assert version is not None
    live.tick(world, STREAM, renew=True)
    # Read together with all others, nothing is late.
    assert rows(world) == completed(world)
    assert live.reasons(world, LIVE, since=version)["late"] == 0
    assert live.problems(world, [LIVE]) == []
