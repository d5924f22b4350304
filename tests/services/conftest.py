"""Deployments that tests may break."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from services import spark_connect
from services.config import Settings


def small(settings: Settings, home: Path) -> Settings:
    """The tests' settings with a home of its own and a small Spark."""
    spark = replace(settings.spark, heap="600m", start_seconds=180.0)
    return replace(settings, home=home, landing=home / "landing", lake=home / "lake", spark=spark)


@pytest.fixture(scope="module")
def own(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """A deployment whose server the tests of a module start, kill and change."""
    mine = small(settings, tmp_path_factory.mktemp("own"))
    yield mine
    spark_connect.stop(mine)


@pytest.fixture
def fresh(settings: Settings, tmp_path: Path) -> Iterator[Settings]:
    """A deployment of one test, where nothing runs yet."""
    mine = small(settings, tmp_path)
    yield mine
    spark_connect.stop(mine)
