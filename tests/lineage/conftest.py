"""Deployments for tests that run the platform from the landing zone to gold."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from blogdata.operate.config import Settings
from blogdata.operate.spark_connect import SparkServer
from lineage.command_line import Said
from lineage.deployment import Deployment
from lineage.origins import Fill, Origins


class Deploy:
    """Creates the deployments of a test file on the tests' Spark server."""

    def __init__(self, folder: Path, origins: Origins) -> None:
        self._folder, self._origins = folder, origins
        self._made: list[Deployment] = []

    def __call__(self, name: str) -> Deployment:
        self._made.append(Deployment.create(self._folder / name, self._origins.url))
        return self._made[-1]

    def published(self, name: str, fill: Fill, *before: Fill) -> Deployment:
        """Create a deployment as a function publishes it: a copy of the one that the whole suite has."""
        self._made.append(self._origins.copy(fill, self._folder / name, *before))
        return self._made[-1]

    def close(self) -> None:
        for deployment in self._made:
            deployment.close()


@pytest.fixture(scope="module")
def deploy(settings: Settings, spark_server: SparkServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deploy]:
    """Creates deployments on the tests' Spark server."""
    # All test processes share the home of the tests' own deployment.
    origins = Origins(folder=settings.home / "origins", url=spark_server.url)
    made = Deploy(tmp_path_factory.mktemp("deployments"), origins)
    with pytest.MonkeyPatch.context() as patch:
        for variable in ("SPARK_REMOTE", "BLOGDATA_LANDING", "BLOGDATA_LAKE"):
            patch.delenv(variable, raising=False)
        yield made
        made.close()


@pytest.fixture
def said(deployment: Deployment, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Said:
    """Runs a command; returns its exit code and output."""
    monkeypatch.setenv("BLOGDATA_HOME", str(deployment.settings.home))
    return Said(monkeypatch, capsys)
