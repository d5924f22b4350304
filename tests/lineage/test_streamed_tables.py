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
from lineage.live import BRONZE, HOURS, ONE_BY_ONE, VISITS, contents, problems

OLDER, EMPTY = "an older lake", "an empty lake"


pytestmark = pytest.mark.campaign


@pytest.fixture(scope="module")
def world(deploy: Deploy) -> Deployment:
    return live.simulate(deploy("lake-world"))


@pytest.fixture(params=[OLDER, EMPTY, BRONZE])
def lost(request: pytest.FixtureRequest) -> str:
    """What is put back, or the table that is gone."""
    return str(request.param)


@pytest.fixture
def deployment(deploy: Deploy, world: Deployment, lost: str) -> Deployment:
    return live.land(deploy(lost), world, HOURS[1:2])


def test_a_stream_stops_at_another_lake_and_the_advice_restores_its_tables(
    said: Said, deployment: Deployment, world: Deployment, lost: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # With a batch for each file, rows are as late whenever the stream runs.
    monkeypatch.setitem(STREAMS, "visits", ONE_BY_ONE)
    assert said("stream", "--once")[0] == 0
    lake, copy = deployment.settings.lake, tmp_path / "copy"
    shutil.copytree(lake, copy)
    deployment.copy_hours(world, HOURS[2:])
    live.in_order(deployment)
    assert said("stream", "--once")[0] == 0
    expected = contents(deployment)

    def restored() -> None:
        code, _, err = said("stream", "visits", "--once", "--new-checkpoint")
        assert code == 0, err
        assert contents(deployment) == expected
        assert problems(deployment) == []

    shutil.rmtree(lake if lost in (OLDER, EMPTY) else deployment.lake.path(lost))
    if lost == OLDER:
        shutil.copytree(copy, lake)
    code, _, err = said("stream", "--once")
    assert (code, "the lake lacks what the stream 'visits' has published" in err) == (1, True), err
    assert "blogdata stream visits --new-checkpoint" in err
    restored()
    # One of its tables alone is older than what was published of it; then it is gone.
    alone = Path(deployment.lake.path(VISITS))
    shutil.rmtree(alone)
    shutil.copytree(copy / alone.relative_to(lake), alone)
    code, _, err = said("stream", "--once", "--new-checkpoint")
    assert (code, "older than what was published of it" in err) == (1, True), err
    shutil.rmtree(alone)
    restored()
    assert said("stream", "--once")[0] == 0
