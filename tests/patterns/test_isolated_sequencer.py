import json
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path

import dagster as dg
import pytest
from dagster_graphql import DagsterGraphQLClientError

from analytics import gold
from analytics.definitions import report_materialized
from blogdata.contract.partitions import Grain, between
from blogdata.files import locked
from blogdata.operate import dagster_home
from blogdata.operate.processes import free_port
from blogdata.runs.lake_resource import DeploymentResource
from guarded import Guarded, serving
from published import deployment, publish
from quality.contracts import EVERY
from sensors.consumers import CAUSE, DATASET, NAME, consumers_called, start

WEEK = "2026-01-05"
DAYS = between(WEEK, "2026-01-11", Grain.DAY)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    with serving(tmp_path_factory.mktemp("served")) as served:
        yield served


class Teams:
    def __init__(self, server: Guarded, home: Path, instance: dg.DagsterInstance, served: ExitStack) -> None:
        self.server, self.instance, self.served = server, instance, served
        self.lake = deployment(home)
        self.cursor: str | None = None

    def publish(self, *days: str, hours: int = 24) -> None:
        measures = {day: {"parts": hours} for day in days}
        publish(self.lake.lake, DATASET, "event_date", dict.fromkeys(days, 1), measures=measures)

    def serve(self, address: str) -> None:
        """Say where the UI is served, by the lock that its process holds."""
        file = Path(self.instance.root_directory) / dagster_home.UI
        self.served.close()
        self.served.enter_context(locked(file, seconds=0))
        file.write_text(address.removeprefix("http://"))

    def tick(self) -> tuple[str, list[str]]:
        """Evaluate the sensor with the cursor it left; return its skip reason and the requested runs."""
        resources = {"lake": self.lake, "deployment": DeploymentResource(home=str(self.server.settings.home))}
        context = dg.build_sensor_context(self.instance, cursor=self.cursor, resources=resources)
        data = consumers_called().evaluate_tick(context)
        self.cursor = data.cursor
        return str(data.skip_message), json.loads(str(data.cursor))["called"].get(NAME, [])


@pytest.fixture
def teams(guarded: Guarded, tmp_path: Path) -> Iterator[Teams]:
    for run in guarded.instance.get_runs():
        guarded.instance.delete_run(run.run_id)
    (tmp_path / "dagster").mkdir()
    with dg.DagsterInstance.ephemeral(tempdir=str(tmp_path / "dagster")) as instance, ExitStack() as served:
        yield Teams(guarded, tmp_path / "home", instance, served)


def test_a_daily_dataset_calls_a_weekly_job_once(teams: Teams) -> None:
    teams.publish(*DAYS[:6])
    assert teams.tick() == ("every published period was called for", [])
    teams.publish(DAYS[6])
    assert "no UI of this deployment is served" in teams.tick()[0]
    teams.serve(teams.server.url)
    said, called = teams.tick()
    (run,) = teams.server.instance.get_runs()
    assert (said, called) == (f"analytics/newsletter {WEEK}: run {run.run_id}", [WEEK])
    assert (run.tags["dagster/partition"], run.tags[CAUSE]) == (WEEK, f"gold.page_stats {WEEK}")
    # Late rows publish a day again whose week was already called for.
    teams.publish(DAYS[2])
    assert teams.tick() == ("every published period was called for", [WEEK])
    assert len(teams.server.instance.get_runs()) == 1


def test_a_day_that_lacks_hours_is_waited_for_until_it_is_overdue(
    teams: Teams, monkeypatch: pytest.MonkeyPatch
) -> None:
    def at(time: str) -> list[str]:
        monkeypatch.setattr("blogdata.planning.clock.now", lambda: datetime.fromisoformat(f"{time}:00+00:00"))
        return teams.tick()[1]

    teams.serve(teams.server.url)
    teams.publish(*DAYS[:6])
    # A person runs the unfinished day.
    teams.publish(DAYS[6], hours=12)
    assert at("2026-01-11T13:00") == at("2026-01-12T00:00") == at("2026-01-12T05:59") == []
    assert at("2026-01-12T06:00") == [WEEK]


def test_an_unreachable_consumer_is_called_again(teams: Teams) -> None:
    teams.publish(*DAYS)
    teams.serve(f"127.0.0.1:{free_port()}")
    said, called = teams.tick()
    assert (said.startswith(f"{NAME} {WEEK}: "), "Connection refused" in said, called) == (True, True, [])
    # A token of another deployment is refused.
    with pytest.raises(DagsterGraphQLClientError, match="401"):
        start(teams.server.url, "0" * 64, WEEK)
    assert not teams.server.instance.get_runs()
    teams.serve(teams.server.url)
    assert teams.tick()[1] == [WEEK]


def test_the_forecast_follows_the_data_across_locations(teams: Teams) -> None:
    sensor, cursor, instance = report_materialized(dg.DefaultSensorStatus.STOPPED), None, teams.instance
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
    types = {"STRING": "string", "BIGINT": "long", "DOUBLE": "double", "INT": "integer"}
    for upstream in (gold.DAILY_REPORT, gold.PAGE_STATS):
        contract = EVERY[upstream.dataset]
        declared = {column.name: types.get(column.type) for column in contract.columns}
        assert upstream.columns.items() <= declared.items()
        assert upstream.owner == contract.owner
        assert "team:analytics" in (contract.owner, *contract.consumers)
