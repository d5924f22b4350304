"""A stream whose server is killed at seeded moments ends in the same tables as an undisturbed one."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from assets.transforms.live_visits import STREAM
from blogdata.services import spark_connect
from blogdata.services.config import Settings
from kills import kill
from lineage import live
from lineage.conftest import Deploy
from lineage.deployment import Deployment
from lineage.live import Tick, contents, problems, tick
from resources.spark import SparkResource

SEED = int(os.environ.get("KILL_SEED", "1"))
PHASES = ("opened", "written", "audited", "committed")


@pytest.fixture
def alone(settings: Settings, tmp_path: Path) -> Iterator[Deployment]:
    """A deployment with its own Spark server."""
    with pytest.MonkeyPatch.context() as patch:
        for variable in ("SPARK_REMOTE", "BLOGDATA_SPARK_MODE", "BLOGDATA_LANDING", "BLOGDATA_LAKE"):
            patch.delenv(variable, raising=False)
        patch.setenv("BLOGDATA_SPARK_HEAP", "1g")
        patch.setenv("BLOGDATA_SPARK_START_SECONDS", "240")
        patch.setenv("BLOGDATA_JARS", str(settings.jars))
        made = Deployment.create(tmp_path / "home")
        yield made
        made.close()
        spark_connect.stop(made.settings)


def kills(deaths: int) -> list[tuple[str, int, str]]:
    """Draw the times of the kills from the seed."""
    draw = random.Random(SEED)
    every = [(dataset, number, phase) for number in range(3) for dataset in STREAM.datasets for phase in PHASES]
    return sorted(draw.sample(every, deaths), key=lambda one: one[1])


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("deaths", [1, pytest.param(12, marks=pytest.mark.campaign)])
def test_server_kills_leave_the_tables_of_undisturbed_runs(
    alone: Deployment, deploy: Deploy, tmp_path: Path, deaths: int
) -> None:
    world = live.simulate(deploy(f"live-kills-world-{deaths}"))
    straight = live.land(deploy(f"live-kills-straight-{deaths}"), world)
    tick(straight)
    live.land(alone, world)
    hold = tmp_path / "probe"
    for dataset, number, phase in kills(deaths):
        print(f"seed {SEED}: the server is killed when batch {number} of {dataset} is {phase}")  # noqa: T201
        held = hold / dataset / str(number)
        held.mkdir(parents=True, exist_ok=True)
        (held / f"{phase}.hold").touch()
        running = Tick(alone, hold)
        if running.reached(held / f"{phase}.reached"):
            server = spark_connect.running_server(SparkResource(home=str(alone.settings.home)).settings)
            kill(server.process)
        running.ended()
        (held / f"{phase}.hold").unlink()
    tick(alone)
    assert contents(alone) == contents(straight)
    assert problems(alone) == []
