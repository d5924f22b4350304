"""A stream whose server or client is killed ends in the tables that plain Python computes."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from itertools import accumulate, product
from operator import itemgetter
from pathlib import Path

import psutil
import pytest

from assets.streams.live_visits import STREAM
from blogdata.operate import spark_connect
from blogdata.operate.config import Settings
from blogdata.operate.spark_connect import SparkServer
from kills import kill
from laws.stepping import Probe
from lineage import live
from lineage.conftest import Deploy
from lineage.deployment import Deployment, event
from lineage.live import BRONZE, HOURS, VISITS, in_order, model, problems, published, tick, ticking
from resources.spark import SparkResource

pytestmark = pytest.mark.campaign
SEED = int(os.environ.get("KILL_SEED", "1"))
PHASES = ("opened", "written", "audited", "committed")


@pytest.fixture
def alone(settings: Settings, tmp_path: Path) -> Iterator[Deployment]:
    with pytest.MonkeyPatch.context() as patch:
        for variable in ("SPARK_REMOTE", "BLOGDATA_LANDING", "BLOGDATA_LAKE"):
            patch.delenv(variable, raising=False)
        patch.setenv("BLOGDATA_SPARK_HEAP", "1g")
        patch.setenv("BLOGDATA_JARS", str(settings.jars))
        made = Deployment.create(tmp_path / "home")
        yield made
        made.close()
        spark_connect.stop(made.settings)


def kills(deaths: int) -> list[tuple[str, int, str]]:
    batches = range(len(HOURS))
    moments = [*product(STREAM.datasets, batches, PHASES)]
    return sorted(random.Random(SEED).sample(moments, deaths), key=itemgetter(1))


def landed(deployment: Deployment) -> list[tuple[str, int, bytes]]:
    """List the landed lines: file, offset and content."""
    lines = []
    for file in in_order(deployment):
        raws = file.read_bytes().split(b"\n")[:-1]
        offsets = accumulate((len(raw) + 1 for raw in raws), initial=0)
        lines += [(str(file.relative_to(deployment.landing)), at, raw) for at, raw in zip(offsets, raws, strict=False)]
    return sorted(lines)


@pytest.mark.timeout(1800)
def test_server_kills_leave_the_tables_of_undisturbed_runs(alone: Deployment, deploy: Deploy, tmp_path: Path) -> None:
    live.land(alone, live.simulate(deploy("live-kills-world")))
    hold = tmp_path / "probe"
    for dataset, number, phase in kills(12):
        print(f"seed {SEED}: the server is killed when batch {number} of {dataset} is {phase}")  # noqa: T201
        probe = Probe(hold / dataset / str(number))
        probe.hold(phase)
        running = ticking(alone, hold)
        if probe.reached(phase, running.is_working):
            server = spark_connect.running_server(SparkResource(home=str(alone.settings.home)).settings)
            kill(server.process)
        running.ended()
        probe.release()
    tick(alone)
    assert published(alone) == model(alone.landing, in_order(alone))[:2]
    line = ("source_file", "source_offset", "raw")
    assert sorted(alone.rows(BRONZE, *line)) == landed(alone)
    assert {*alone.rows(VISITS, *line)} <= {*landed(alone)}
    assert problems(alone) == []


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
    deploy: Deploy, spark_server: SparkServer, tmp_path: Path
) -> None:
    begun = deploy("live-orphan")
    for hour, page in zip(HOURS[:2], "ab", strict=True):
        begun.land(hour, [event(f"{hour[-2:]}:05", f"/{page}"), event(f"{hour[-2:]}:06", f"/{page}")])
    in_order(begun)
    probe = Probe(tmp_path / VISITS / "0")
    probe.hold("written")
    client = ticking(begun, tmp_path)
    assert probe.reached("written", client.is_working)
    client.kill()
    # It has looked at the table and written its rows; only the commit is missing.
    tick(begun, renew=True)
    probe.release()
    until_queries_have_ended(spark_server)
    assert (probe.folder / "audited.reached").exists()
    line = ("source_file", "source_offset", "raw")
    assert sorted(begun.rows(BRONZE, *line)) == sorted(begun.rows(VISITS, *line)) == landed(begun)
    assert problems(begun) == []
