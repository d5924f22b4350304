"""Deployments for tests that run the platform from the landing zone to gold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from blogdata.services.spark_connect import SparkServer
from lineage.command_line import Said
from lineage.deployment import Deployment

Deploy = Callable[[str], Deployment]


@pytest.fixture(scope="module")
def deploy(spark_server: SparkServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deploy]:
    """Creates deployments on the tests' Spark server."""
    made: list[Deployment] = []
    folder: Path = tmp_path_factory.mktemp("deployments")

    def create(name: str) -> Deployment:
        made.append(Deployment.create(folder / name, spark_server.url))
        return made[-1]

    with pytest.MonkeyPatch.context() as patch:
        for variable in ("SPARK_REMOTE", "BLOGDATA_SPARK_MODE", "BLOGDATA_LANDING", "BLOGDATA_LAKE"):
            patch.delenv(variable, raising=False)
        yield create
        for deployment in made:
            deployment.close()


@pytest.fixture
def said(deployment: Deployment, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Said:
    """Runs a command; returns its exit code and output."""
    monkeypatch.setenv("BLOGDATA_HOME", str(deployment.settings.home))
    return Said(monkeypatch, capsys)
