"""Two teams' pipelines run one after the other, and a fault of one does not affect the other; without Spark.

Pattern: Isolated Sequencer.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import dagster as dg
import pytest
from dagster_graphql import DagsterGraphQLClientError

from analytics import gold
from analytics.definitions import defs as analytics_definitions
from analytics.definitions import report_materialized
from blogdata.cli import ui_command
from blogdata.contract.partitions import Grain, between
from blogdata.files import locked
from blogdata.operate import config, dagster_home
from blogdata.operate.config import Settings
from blogdata.operate.processes import free_port
from blogdata.runs.lake_resource import DeploymentResource, LakeResource
from definitions import build
from guarded import Guarded, serving
from published import deployment, publish
from quality.contracts import EVERY
from sensors.consumers import CAUSE, DATASET, NAME, consumers_called, start

WEEK = "2026-01-05"
DAYS = between(WEEK, "2026-01-11", Grain.DAY)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """Dagster's own web server, as `blogdata ui` serves it, with the analytics team's location."""
    with serving(tmp_path_factory.mktemp("served")) as found:
        yield found


@pytest.fixture
def server(guarded: Guarded) -> Guarded:
    """The same server without earlier runs."""
    for run in guarded.instance.get_runs():
        guarded.instance.delete_run(run.run_id)
    return guarded


def runs(server: Guarded) -> list[dict[str, str]]:
    """List the tags of the runs that the platform has requested, oldest first."""
    kept = ("dagster/partition", CAUSE)
    found = reversed(server.instance.get_runs())
    return [{name: value for name, value in run.tags.items() if name in kept} for run in found]


@pytest.fixture
def lake(tmp_path: Path) -> LakeResource:
    return deployment(tmp_path / "home")


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    (tmp_path / "dagster").mkdir()
    with dg.DagsterInstance.ephemeral(tempdir=str(tmp_path / "dagster")) as found:
        yield found


Tick = Callable[[], tuple[str, list[str]]]


Served = Callable[[str], None]


@pytest.fixture
def served_at(instance: dg.DagsterInstance) -> Iterator[Served]:
    """Says where the UI is served, by the lock that its process holds."""
    file = Path(instance.root_directory) / dagster_home.UI

    def served(address: str) -> None:
        file.write_text(address.removeprefix("http://"))

    with locked(file, seconds=0):
        yield served


@pytest.fixture
def tick(lake: LakeResource, instance: dg.DagsterInstance, guarded: Guarded) -> Tick:
    """Evaluates the sensor with the cursor it left; returns its skip reason and the requested runs."""
    cursor: list[str | None] = [None]
    resources = {"lake": lake, "deployment": DeploymentResource(home=str(guarded.settings.home))}

    def evaluate() -> tuple[str, list[str]]:
        context = dg.build_sensor_context(instance, cursor=cursor[0], resources=resources)
        data = consumers_called().evaluate_tick(context)
        cursor[0] = data.cursor
        assert data.cursor is not None
        return str(data.skip_message), json.loads(data.cursor)["called"].get(NAME, [])

    return evaluate


def published(lake: LakeResource, *days: str, hours: int = 24) -> None:
    measures = {day: {"parts": hours} for day in days}
    publish(lake.lake, DATASET, "event_date", dict.fromkeys(days, 1), measures=measures)


def test_a_daily_dataset_calls_a_weekly_job_once(
    lake: LakeResource, server: Guarded, tick: Tick, request: pytest.FixtureRequest
) -> None:
    published(lake, *DAYS[:6])
    assert tick() == ("nothing is there that a consumer was not called for", [])
    published(lake, DAYS[6])
    assert "no UI of this deployment is served" in tick()[0]
    request.getfixturevalue("served_at")(server.url)
    said, called = tick()
    (run,) = server.instance.get_runs()
    assert (said, called) == (f"analytics/newsletter {WEEK}: run {run.run_id}", [WEEK])
    # Late rows publish a day again whose week was already called for.
    published(lake, DAYS[2])
    assert tick() == ("nothing is there that a consumer was not called for", [WEEK])
    assert runs(server) == [{"dagster/partition": WEEK, CAUSE: f"gold.page_stats {WEEK}"}]


@pytest.mark.parametrize("rest_comes", [True, False])
def test_a_day_that_lacks_hours_is_waited_for_until_it_is_overdue(
    lake: LakeResource,
    server: Guarded,
    tick: Tick,
    served_at: Served,
    monkeypatch: pytest.MonkeyPatch,
    rest_comes: bool,
) -> None:
    def at(time: str) -> list[str]:
        monkeypatch.setattr("blogdata.planning.clock.now", lambda: datetime.fromisoformat(f"{time}:00+00:00"))
        return tick()[1]

    served_at(server.url)
    published(lake, *DAYS[:6])
    # A person runs the unfinished day.
    published(lake, DAYS[6], hours=12)
    assert at("2026-01-11T13:00") == at("2026-01-12T00:00") == at("2026-01-12T05:59") == []
    if rest_comes:
        published(lake, DAYS[6])
        assert at("2026-01-12T01:05") == [WEEK]
    else:
        assert at("2026-01-12T06:00") == [WEEK]


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


def test_an_unreachable_consumer_is_called_again(
    lake: LakeResource, server: Guarded, tick: Tick, served_at: Served
) -> None:
    published(lake, *DAYS)
    served_at(f"127.0.0.1:{free_port()}")
    said, called = tick()
    assert (said.startswith(f"{NAME} {WEEK}: "), "Connection refused" in said, called) == (True, True, [])
    # A token of another deployment is refused.
    with pytest.raises(DagsterGraphQLClientError, match="401"):
        start(server.url, "0" * 64, WEEK)
    assert not server.instance.get_runs()
    served_at(server.url)
    assert tick()[1] == [WEEK]


def test_the_other_team_relies_on_declared_columns() -> None:
    """The columns the forecast reads are in the contracts, which name it as a consumer: changing one side breaks this
    test.
    """
    types = {"STRING": "string", "BIGINT": "long", "DOUBLE": "double", "INT": "integer"}
    for upstream in (gold.DAILY_REPORT, gold.PAGE_STATS):
        contract = EVERY[upstream.dataset]
        declared = {column.name: types.get(column.type) for column in contract.columns}
        assert upstream.columns.items() <= declared.items()
        assert upstream.owner == contract.owner
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
    assert checks[0]
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
        "sorted({n for n in sys.modules if n.split('.')[0] in ours} - {'blogdata', 'blogdata.operate'}))"
    )
    done = subprocess.run(
        [project / "interpreter", "-c", code],
        cwd=ui_command.ROOT,
        env={**os.environ, "DAGSTER_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "[] ['blogdata.operate.dagster_internals', 'blogdata.operate.dagster_storage']", (
        done.stderr
    )
