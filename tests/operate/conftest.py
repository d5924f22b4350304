"""Deployments that tests may break."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import plans
from blogdata.operate import spark_connect
from blogdata.operate.config import Settings


def small(settings: Settings, home: Path) -> Settings:
    """The tests' settings with a separate home and a small Spark, also for other processes of this home."""
    options = "".join(f"{json.dumps(name)} = {json.dumps(value)}\n" for name, value in plans.COMPILED_ONCE.items())
    (home / "blogdata.toml").write_text(f"[spark.conf]\n{options}", encoding="utf-8")
    spark = replace(settings.spark, heap="600m", conf=tuple(plans.COMPILED_ONCE.items()))
    return replace(settings, home=home, landing=home / "landing", lake=home / "lake", spark=spark)


@pytest.fixture(scope="module")
def own(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """A deployment whose server a module's tests start, kill and change."""
    mine = small(settings, tmp_path_factory.mktemp("own"))
    yield mine
    spark_connect.stop(mine)


@pytest.fixture
def fresh(settings: Settings, tmp_path: Path) -> Iterator[Settings]:
    """A deployment of one test, where nothing runs yet."""
    mine = small(settings, tmp_path)
    yield mine
    spark_connect.stop(mine)
