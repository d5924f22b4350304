"""The lake of a daily job, for tests of the Stateful Merger."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from blogdata.publish.partitions import Grain
from blogdata.publish.writes import InOrder
from idempotency.executing import CONTRACT, DAILY, DAYS, Table


@pytest.fixture(scope="session")
def four_days(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The lake of table 4-4: four executions of a daily job."""
    root = tmp_path_factory.mktemp("four-days") / "lake"
    root.mkdir()
    Table(spark, root, DAILY, contract=replace(CONTRACT, write=InOrder(period=Grain.DAY))).execute(*DAYS, run="before")
    return root


@pytest.fixture
def daily(spark: Any, four_days: Path, tmp_path: Path) -> Table:
    """A copy of that lake for each test."""
    root = shutil.copytree(four_days, tmp_path / "daily")
    return Table(spark, root, DAILY, contract=replace(CONTRACT, write=InOrder(period=Grain.DAY)))
