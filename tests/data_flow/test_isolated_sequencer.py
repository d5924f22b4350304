"""Two teams' pipelines run one after the other, and a fault of one does not affect the other; without Spark.

Pattern: Isolated Sequencer.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from analytics import gold
from analytics.definitions import defs as analytics_definitions
from analytics.definitions import report_materialized
from blogdata.cli import ui_command
from blogdata.services import config, dagster_home
from blogdata.services.config import Settings
from definitions import build
from quality.contracts import EVERY

DAYS = ("2026-01-05", "2026-01-06", "2026-01-07")


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    (tmp_path / "dagster").mkdir()
    with dg.DagsterInstance.ephemeral(tempdir=str(tmp_path / "dagster")) as found:
        yield found


def test_the_forecast_follows_the_data_across_locations(instance: dg.DagsterInstance) -> None:
    sensor, cursor = report_materialized(dg.DefaultSensorStatus.STOPPED), None
    asked: list[str | None] = []
    for days in (0, 3, 0, 1):
        for day in DAYS[:days]:
            instance.report_runless_asset_event(dg.AssetMaterialization(["gold", "daily_report"], partition=day))
        data = sensor.evaluate_tick(dg.build_sensor_context(instance, cursor=cursor))
        cursor = data.cursor
        asked.append(data.run_requests[0].run_key if data.run_requests else None)
    # Several days of a run cause one call, and a republished day causes a new one.
    assert [key is not None for key in asked] == [False, True, False, True]
    assert asked[1] != asked[3]


def test_the_other_team_relies_on_declared_columns() -> None:
    """The columns the forecast reads are in the contracts, which name it as a consumer: changing one side breaks this
    test.
    """
    types = {"STRING": "string", "BIGINT": "long", "DOUBLE": "double", "INT": "integer"}
    contract = EVERY[gold.DAILY_REPORT.dataset]
    declared = {column.name: types.get(column.type) for column in contract.columns}
    assert gold.DAILY_REPORT.columns.items() <= declared.items()
    assert gold.DAILY_REPORT.owner == contract.owner
    assert "team:analytics" in (contract.owner, *contract.consumers)


def test_an_asset_and_its_checks_are_of_one_location(tmp_path: Path) -> None:
    """A page selects an asset's checks with it, and a run is given the definitions of the asset's location only."""
    platform = build(Settings(home=tmp_path, landing=tmp_path, lake=tmp_path, jars=tmp_path))
    assets, checks = [], []
    for location in (platform, analytics_definitions()):
        graph = location.resolve_asset_graph()
        specs = {asset.key for asset in location.assets or () if isinstance(asset, dg.AssetSpec)}
        assets.append(graph.materializable_asset_keys | specs)
        checks.append({key.asset_key for key in graph.asset_check_keys})
    assert all(assets)
    assert all(checks)
    assert assets[0] & assets[1] == set(), "of several locations that supply an asset, the pages take one"
    assert (checks[0] - assets[0], checks[1] - assets[1]) == (set(), set())


@pytest.mark.campaign
def test_the_other_location_has_its_own_dependencies(tmp_path: Path) -> None:
    """Its process imports nothing of the platform except the storage class in Dagster's configuration."""
    project = ui_command.ROOT / "analytics"
    if not (project / ".venv" / "bin" / "python").exists():
        pytest.skip("needs analytics/.venv: make setup")
    home = dagster_home.render(config.load({"BLOGDATA_HOME": str(tmp_path)}))
    code = (
        "import importlib.util, sys, analytics.definitions as d; d.defs();"
        "from dagster import DagsterInstance; DagsterInstance.get().dispose();"
        "ours = ('blogdata', 'quality', 'sensors', 'definitions');"
        "print([n for n in ('pyspark', 'delta', 'great_expectations') if importlib.util.find_spec(n)],"
        "sorted({n for n in sys.modules if n.split('.')[0] in ours} - {'blogdata', 'blogdata.services'}))"
    )
    done = subprocess.run(
        [project / "interpreter", "-c", code],
        cwd=ui_command.ROOT,
        env={**os.environ, "DAGSTER_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "[] ['blogdata.services.dagster_internals', 'blogdata.services.dagster_storage']", (
        done.stderr
    )
