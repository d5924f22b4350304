"""A stream goes on only with the lake that it has published to; what its error advises gives the same tables."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from assets.streams import STREAMS
from lineage import live
from lineage.command_line import Said
from lineage.conftest import Deploy
from lineage.deployment import Deployment
from lineage.live import BRONZE, HOURS, ONE_BY_ONE, VISITS, contents, problems, tick


@pytest.fixture(scope="module")
def world(deploy: Deploy) -> Deployment:
    """A simulated day, not landed yet."""
    return live.simulate(deploy("lake-world"))


@pytest.fixture
def deployment(deploy: Deploy, world: Deployment) -> Deployment:
    """Two hours, not streamed yet."""
    return live.land(deploy("lake-put-back"), world, HOURS[:2])


def test_a_stream_stops_at_another_lake_and_the_advice_restores_its_tables(
    said: Said,
    deployment: Deployment,
    world: Deployment,
    deploy: Deploy,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    # With a batch for each file, rows are as late whenever the stream runs.
    monkeypatch.setitem(STREAMS, "visits", ONE_BY_ONE)
    undisturbed = live.land(deploy("lake-straight"), world)
    tick(undisturbed)
    expected, lake = contents(undisturbed), deployment.settings.lake

    def stopped() -> None:
        code, _, err = said("stream", "--once")
        assert (code, "the lake lacks what the stream 'visits' has published" in err) == (1, True), err
        assert "blogdata stream visits --new-checkpoint" in err

    def restored() -> None:
        assert said("stream", "visits", "--once", "--new-checkpoint")[0] == 0
        assert contents(deployment) == expected
        assert problems(deployment) == []
        assert said("stream", "--once")[0] == 0

    assert said("stream", "--once")[0] == 0
    shutil.copytree(lake, tmp_path / "copy")
    deployment.copy_hours(world, HOURS[2:])
    live.in_order(deployment)
    assert said("stream", "--once")[0] == 0
    assert contents(deployment) == expected
    # An older lake is put back.
    shutil.rmtree(lake)
    shutil.copytree(tmp_path / "copy", lake)
    stopped()
    restored()
    # An empty one.
    shutil.rmtree(lake)
    stopped()
    restored()
    # One of its tables alone is older than what was published of it.
    alone = Path(deployment.lake.path(VISITS))
    shutil.rmtree(alone)
    shutil.copytree(tmp_path / "copy" / alone.relative_to(lake), alone)
    code, _, err = said("stream", "--once", "--new-checkpoint")
    assert (code, "is older than what was published of it" in err) == (1, True), err
    shutil.rmtree(alone)
    restored()
    # One of its tables is gone.
    for name in (VISITS, BRONZE):
        shutil.rmtree(deployment.lake.path(name))
        stopped()
        restored()
