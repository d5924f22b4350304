"""Checkpointer: a stream's client is killed, its query continues in the server, and no line is doubled."""

from __future__ import annotations

import time
from pathlib import Path

import psutil
import pytest

from blogdata.services.spark_connect import SparkServer
from lineage import live
from lineage.conftest import Deploy
from lineage.deployment import Deployment, event
from lineage.live import BRONZE, HOURS, SET_ASIDE, VISITS, Tick, problems, tick

PAGES = ("/a", "/b", "/c", "/d")


@pytest.fixture
def begun(deploy: Deploy, request: pytest.FixtureRequest) -> Deployment:
    """Three landed files, none of them processed."""
    made = deploy(request.node.name[:40])
    for hour, first, second in zip(HOURS, PAGES[:-1], PAGES[1:], strict=True):
        made.land(hour, [event(f"{hour[-2:]}:05", first), event(f"{hour[-2:]}:06", second)])
    live.in_order(made)
    return made


def once(made: Deployment) -> None:
    """Check that all lines were processed, and none twice."""
    there = [
        (str(file.relative_to(made.landing)), offset)
        for file in live.in_order(made)
        for offset in (0, file.read_bytes().index(b"\n") + 1)
    ]
    assert sorted(made.rows(BRONZE, "source_file", "source_offset")) == sorted(there)
    assert sorted(made.rows(VISITS, "source_file", "source_offset")) == sorted(there)
    assert made.rows(SET_ASIDE, "reason") == []
    assert problems(made) == []


def until_queries_have_ended(server: SparkServer) -> None:
    """Wait until no query works on a batch, whichever client began it."""
    assert server.process is not None
    deadline = time.monotonic() + 300
    while any(_works_on_batches(each) for each in psutil.Process(server.process.pid).children(recursive=True)):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def _works_on_batches(process: psutil.Process) -> bool:
    try:
        return any("foreach_batch" in part for part in process.cmdline())
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return False


@pytest.mark.campaign
@pytest.mark.timeout(900)
def test_a_killed_clients_orphan_query_doubles_no_line(
    begun: Deployment, spark_server: SparkServer, tmp_path: Path
) -> None:
    held = tmp_path / BRONZE / "0"
    held.mkdir(parents=True)
    (held / "written.hold").touch()
    client = Tick(begun, tmp_path)
    assert client.reached(held / "written.reached")
    client.kill()
    # It has looked at the table and written its rows; only the commit is missing.
    tick(begun, renew=True)
    (held / "written.hold").unlink()
    until_queries_have_ended(spark_server)
    assert (held / "audited.reached").exists()
    once(begun)
