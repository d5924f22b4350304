"""A run in a copied home uses, restarts and stops no server of the original."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from blogdata.orchestration import owners, turns
from blogdata.services import config, postgres, spark_connect
from blogdata.services.config import Settings
from lineage.command_line import Said
from lineage.conftest import Deploy, deploy, said
from lineage.deployment import OWN_SERVER, Deployment, event
from lineage.origins import THREE_HOURS, three_hours
from quality.contracts.serving import DAILY_STATS

__all__ = ("deploy", "said")
HOUR = THREE_HOURS[-1]
SMALL = f'[spark]\nheap = "700m"\n{OWN_SERVER}'


@pytest.fixture(scope="module")
def deployment(deploy: Deploy) -> Iterator[Deployment]:
    """A deployment with data and servers of its own, as a user's."""
    home = deploy.published("with-servers", three_hours).settings.home
    (home / "blogdata.toml").write_text(SMALL, encoding="utf-8")
    made = Deployment(settings=config.load(overrides={"BLOGDATA_HOME": str(home)}))
    postgres.up(made.settings)
    spark_connect.running_server(made.settings)
    assert made.run(for_=[DAILY_STATS.dataset]).problems == []
    yield made
    made.close()
    spark_connect.stop(made.settings)
    postgres.stop(made.settings)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """The home of a copy, whose servers are stopped in the end."""
    yield tmp_path / "copy"
    if (tmp_path / "copy").is_dir():
        copy = config.load(overrides={"BLOGDATA_HOME": str(tmp_path / "copy")})
        spark_connect.stop(copy)
        postgres.stop(copy)


def pids(settings: Settings) -> list[int | None]:
    """List the processes of a deployment's servers that answer: of runs, of roles, PostgreSQL."""
    servers = (settings, spark_connect.of_roles(settings))
    found = [*map(spark_connect.status, servers), postgres.status(settings)]
    return [each.pid if each.state == "running" else None for each in found]


def served(settings: Settings) -> int:
    """Count the page views in a deployment's PostgreSQL."""
    with psycopg.connect(postgres.up(settings)) as connection:
        ((found,),) = connection.execute("SELECT sum(events)::int FROM serving.page_stats").fetchall()
    return int(found)


def test_a_home_copied_during_work_has_servers_of_its_own(
    deployment: Deployment, place: Path, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    said("sql", "SELECT 1", "--as", "analyst")
    before, views = pids(deployment.settings), served(deployment.settings)
    assert None not in before
    held, owner = turns.claims(deployment.lake, "silver.visits"), owners.this_run()
    assert held.take([HOUR], owner) == [HOUR]
    subprocess.run(["cp", "-a", deployment.settings.home, place], check=True)

    monkeypatch.setenv("BLOGDATA_HOME", str(place))
    code, out, _ = said("status", "--json")
    servers = [row["state"] for row in json.loads(out) if row["service"] != "findings"]
    assert (code, {*servers} - {"off"}) == (0, {"stopped"})
    copy = Deployment(settings=config.load())
    assert said("sql", "SELECT count(*) FROM gold.page_stats")[0] == 0
    copy.land(HOUR, [event(f"{HOUR[-2:]}:50", "/new")], "another.json")
    assert copy.run(for_=[DAILY_STATS.dataset]).problems == []
    assert (served(deployment.settings), served(copy.settings)) == (views, views + 1)
    assert not {*pids(copy.settings)} & {*before}
    copy.close()
    assert said("down")[0] == 0
    assert (pids(copy.settings), pids(deployment.settings)) == ([None] * 3, before)

    held.release([HOUR], owner)
    deployment.land(HOUR, [event(f"{HOUR[-2:]}:50", "/new")], "another.json")
    assert deployment.run(for_=[DAILY_STATS.dataset]).problems == []
    assert pids(deployment.settings) == before
    for dataset in ("silver.visits", "gold.page_stats"):
        assert deployment.contents_of(dataset) == copy.contents_of(dataset)
