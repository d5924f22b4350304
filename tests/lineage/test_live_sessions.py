"""The stream of sessions finds the completed sessions of the batch, once, through a kill, and counts what is late."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest

from assets.transforms.live_sessions import STREAM
from evidence import ledger
from evidence.appended import appended
from lineage import live
from lineage.conftest import Deploy
from lineage.deployment import Deployment
from lineage.live import Tick
from patterns.error_management.checkpointer import Checkpoint, checkpoints
from quality.contracts import STREAMED
from quality.contracts.sessions import SESSIONS
from simulator import landing as simulator
from simulator.faults import LINE_FAULTS, FaultRates
from simulator.spec import SimulationSpec

LIVE = "silver.sessions_live"
# What is late for the batch is later than an hour, and of no session of the stream.
RATES = {**dict.fromkeys(LINE_FAULTS, 0.05), "huge_line": 0.0, "late": 0.0, "empty_hour": 0.05, "missing_hour": 0.05}
SPEC = SimulationSpec(days=1, visits_per_day=600, seed=8, faults=FaultRates(**RATES))
NEXT = "2026-01-06T03"
COLUMNS = tuple(column.name for column in SESSIONS.columns)


def view(time: str, user: str, page: str = "/p") -> bytes:
    visit = {"visit_id": f"v-{user}", "event_time": f"{time}Z", "user_id": user, "page": page}
    return json.dumps({**visit, "keep_private": False, "context": None}).encode()


@pytest.fixture(scope="module")
def world(deploy: Deploy, tmp_path_factory: pytest.TempPathFactory) -> Deployment:
    """A day in two ticks, and the hour whose page view closes all sessions; the second one is killed."""
    source = tmp_path_factory.mktemp("source")
    simulator.simulate(SPEC, source)
    deployment = deploy("live-sessions")
    for begin in (0, 12):
        for hour in range(begin, begin + 12):
            there = source / "visits" / "date=2026-01-05" / f"hour={hour:02d}"
            if there.is_dir():
                shutil.copytree(there, deployment.folder(f"2026-01-05T{hour:02d}"))
        if begin:
            deployment.land(NEXT, [view("2026-01-06T03:50:00", "last")])
        in_order(deployment)
        if begin:
            killed(deployment, tmp_path_factory.mktemp("probe"))
        live.tick(deployment, STREAM)
    # The hours with rows, and then those that never landed.
    for datasets in (("bronze.visits", "silver.visits", "silver.sessions"), ("silver.sessions",)):
        assert deployment.run(select=datasets).problems == []
    return deployment


def in_order(deployment: Deployment) -> None:
    files = sorted(deployment.landing.glob("*/date=*/hour=*/*.json"), key=lambda file: (file.parts[-3:-1], file.parts))
    for at, file in enumerate(files):
        os.utime(file, (1_767_600_000 + at,) * 2)


def killed(deployment: Deployment, folder: Path) -> None:
    """Kill a tick with -9 when its rows are written and not committed; its query stays in the server."""
    # The batch with the rows moves the watermark; the one after it lets the sessions go.
    number = max(planned.number for planned in newest(deployment).batches()) + 2
    held = folder / LIVE / str(number)
    held.mkdir(parents=True)
    (held / "written.hold").touch()
    client = Tick(deployment, folder, "STREAMS['sessions']")
    assert client.reached(held / "written.reached")
    client.kill()
    (held / "written.hold").unlink()


def newest(deployment: Deployment) -> Checkpoint:
    return checkpoints(deployment.settings.checkpoints, STREAM.name)[-1]


def rows(deployment: Deployment) -> Counter[str]:
    return Counter(repr(row) for row in deployment.rows(LIVE, *COLUMNS))


def completed(deployment: Deployment) -> Counter[str]:
    found = deployment.rows("silver.sessions", *COLUMNS)
    return Counter(repr(row) for row in found if row[COLUMNS.index("is_completed")])


def reasons(deployment: Deployment, since: int = 0) -> Counter[str]:
    """Sum up what was left out, of the commits behind a version."""
    found = Counter[str]()
    for commit in appended(deployment.lake, LIVE):
        if commit.version > since:
            found.update(commit.reasons)
    return found


def test_streamed_sessions_equal_those_of_the_batch(world: Deployment) -> None:
    assert rows(world) == completed(world)
    assert sum(rows(world).values()) > 100
    lines = ledger.audit(world.lake, world.events, STREAMED[LIVE])
    assert [line.problem for line in lines if line.problem] == []
    found = reasons(world)
    assert (found["late"], found["duplicate"] > 0, found["conflict"] > 0) == (0, True, True)
    assert all(planned.committed for planned in newest(world).batches())


def test_a_late_row_is_counted_not_joined(world: Deployment) -> None:
    before, version = rows(world), world.lake.version(LIVE)
    assert version is not None
    user, ended = world.rows(LIVE, "user_id", "ended_at")[0]
    # Within the inactivity of a session that was let go of.
    late = view((ended + timedelta(minutes=5)).strftime("%Y-%m-%dT%H:%M:%S"), user, "/late")
    world.land(NEXT, [late], name="late.json")
    live.tick(world, STREAM)
    assert (rows(world), reasons(world, since=version)["late"]) == (before, 1)
    # The batch twin has it, in the same session.
    assert world.run(select=("bronze.visits", "silver.visits", "silver.sessions")).problems == []
    twin = {row[0]: row[1] for row in world.rows("silver.sessions", "exit_page", "session_id")}
    assert twin["/late"] in world.rows(LIVE, "session_id")
    live.tick(world, STREAM)
    assert rows(world) == before


def test_a_new_checkpoint_publishes_no_session_twice(world: Deployment) -> None:
    before, version = rows(world), world.lake.version(LIVE)
    assert version is not None
    live.tick(world, STREAM, renew=True)
    assert rows(world) == before
    found = reasons(world, since=version)
    # Read at once with all others the row that was late belongs to its session, which stays as it was published.
    assert (found["late"], found["conflict"] > 0) == (0, True)
    lines = ledger.audit(world.lake, world.events, STREAMED[LIVE])
    assert [line.problem for line in lines if line.problem] == []
