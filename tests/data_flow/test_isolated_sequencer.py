"""Two teams' pipelines run one after the other, and neither's fault becomes the other's; without Spark.

Pattern: Isolated Sequencer.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from analytics import gold
from analytics.definitions import defs as analytics_definitions
from analytics.definitions import report_materialized
from blogdata import code_locations
from orchestration.consumers import CAUSE, DagsterConsumer
from patterns.data_flow.isolated_sequencer import Called, ConsumerFault, ConsumerUnreachable, call, due
from publish.partitions import Grain, between
from published import deployment, publish
from quality.consumers import CALLS
from quality.contracts import EVERY
from resources.lake import LakeResource
from sensors.consumers import consumers_called
from services import config, dagster_home

WEEK, NEXT = "2026-01-05", "2026-01-12"
DAYS = between(WEEK, "2026-01-11", Grain.DAY)
(NEWSLETTER,) = CALLS


class WebServer:
    """A web server that answers as Dagster's does: knows one job, keeps its runs by tag, and may be told to fail."""

    def __init__(self) -> None:
        self.job = "newsletter"
        self.runs: list[Mapping[str, str]] = []
        self.status = 200
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
                body = json.dumps({"data": owner.answer(asked["query"], asked["variables"])}).encode()
                self.send_response(owner.status)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server.server_port}"

    def answer(self, query: str, given: Mapping[str, Any]) -> Any:
        if query.startswith("query"):
            (tag,) = given["f"]["tags"]
            found = [{"runId": run["id"]} for run in self.runs if run.get(tag["key"]) == tag["value"]]
            return {"runsOrError": {"results": found}}
        selector, tags = given["p"]["selector"], given["p"]["executionMetadata"]["tags"]
        if (selector["repositoryLocationName"], selector["jobName"]) != ("analytics", self.job):
            return {"launchRun": {"__typename": "PipelineNotFoundError", "message": "no such job"}}
        self.runs.append({"id": f"run-{len(self.runs)}", **{tag["key"]: tag["value"] for tag in tags}})
        return {"launchRun": {"__typename": "LaunchRunSuccess", "run": {"runId": self.runs[-1]["id"]}}}


@pytest.fixture
def server() -> Iterator[WebServer]:
    found = WebServer()
    yield found
    found.server.shutdown()
    found.server.server_close()


@pytest.fixture
def lake(tmp_path: Path) -> LakeResource:
    return deployment(tmp_path / "home")


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    (tmp_path / "dagster").mkdir()
    with dg.DagsterInstance.ephemeral(tempdir=str(tmp_path / "dagster")) as found:
        yield found


Tick = Callable[[], tuple[str, list[str]]]


@pytest.fixture
def tick(lake: LakeResource, instance: dg.DagsterInstance) -> Tick:
    """Evaluates the sensor with the cursor it left; its skip reason and what it has called for."""
    cursor: list[str | None] = [None]

    def evaluate() -> tuple[str, list[str]]:
        context = dg.build_sensor_context(instance, cursor=cursor[0], resources={"lake": lake})
        data = consumers_called().evaluate_tick(context)
        cursor[0] = data.cursor
        assert data.cursor is not None
        return str(data.skip_message), json.loads(data.cursor)["called"].get(NEWSLETTER.name, [])

    return evaluate


def published(lake: LakeResource, *days: str, hours: int = 24) -> None:
    measures = {day: {"parts": hours} for day in days}
    publish(lake.lake, NEWSLETTER.dataset, "event_date", dict.fromkeys(days, 1), measures=measures)


def test_a_daily_dataset_calls_a_weekly_job_once(
    lake: LakeResource, server: WebServer, tick: Tick, instance: dg.DagsterInstance
) -> None:
    published(lake, *DAYS[:6])
    assert tick() == ("nothing is there that a consumer was not called for", [])
    published(lake, DAYS[6])
    assert "no UI of this deployment is served" in tick()[0]
    dagster_home.note_ui_address(Path(instance.root_directory), server.address)
    assert tick() == (f"analytics/newsletter {WEEK}: run run-0", [WEEK])
    # Late rows publish a day again: the week was called for.
    published(lake, DAYS[2])
    assert tick() == ("nothing is there that a consumer was not called for", [WEEK])
    assert server.runs == [{"id": "run-0", "dagster/partition": WEEK, CAUSE: f"gold.page_stats {WEEK}"}]


@pytest.mark.parametrize("rest_comes", [True, False])
def test_a_day_that_lacks_hours_is_waited_for_until_it_is_overdue(
    lake: LakeResource,
    server: WebServer,
    tick: Tick,
    instance: dg.DagsterInstance,
    monkeypatch: pytest.MonkeyPatch,
    rest_comes: bool,
) -> None:
    def at(time: str) -> list[str]:
        monkeypatch.setattr("planning.look.now", lambda: datetime.fromisoformat(f"{time}:00+00:00"))
        return tick()[1]

    dagster_home.note_ui_address(Path(instance.root_directory), server.address)
    published(lake, *DAYS[:6])
    # A person runs the unfinished day.
    published(lake, DAYS[6], hours=12)
    assert at("2026-01-11T13:00") == at("2026-01-12T00:00") == at("2026-01-12T05:59") == []
    if rest_comes:
        published(lake, DAYS[6])
        assert at("2026-01-12T01:05") == [WEEK]
    else:
        assert at("2026-01-12T06:00") == [WEEK]


def test_a_lost_memory_starts_nothing_twice(server: WebServer) -> None:
    consumer = DagsterConsumer(url=f"http://{server.address}")
    first = call(consumer, NEWSLETTER, [WEEK, NEXT])
    again = call(consumer, NEWSLETTER, [WEEK, NEXT])
    assert first == again == Called(runs={WEEK: "run-0", NEXT: "run-1"})
    assert len(server.runs) == 2


def test_the_forecast_follows_the_data_across_locations(instance: dg.DagsterInstance) -> None:
    sensor, cursor = report_materialized(dg.DefaultSensorStatus.STOPPED), None
    asked: list[str | None] = []
    for days in (0, 3, 0, 1):
        for day in DAYS[:days]:
            instance.report_runless_asset_event(dg.AssetMaterialization(["gold", "daily_report"], partition=day))
        data = sensor.evaluate_tick(dg.build_sensor_context(instance, cursor=cursor))
        cursor = data.cursor
        asked.append(data.run_requests[0].run_key if data.run_requests else None)
    # Several days of a run are one reason, and a day that is published again is a new one.
    assert [key is not None for key in asked] == [False, True, False, True]
    assert asked[1] != asked[3]


def test_years_before_the_first_call_are_not_called_for() -> None:
    weeks = between("2026-01-05", "2026-01-25", Grain.DAY)
    assert due(NEWSLETTER, weeks, ()) == ["2026-01-19"]
    assert due(NEWSLETTER, weeks, ["2026-01-19"]) == []
    assert due(NEWSLETTER, weeks, ["2026-01-05"]) == ["2026-01-12", "2026-01-19"]
    assert due(NEWSLETTER, weeks[1:7], ()) == []


def test_a_renamed_job_stops_nothing_of_ours(
    lake: LakeResource, server: WebServer, tick: Tick, instance: dg.DagsterInstance
) -> None:
    dagster_home.note_ui_address(Path(instance.root_directory), server.address)
    published(lake, *DAYS)
    server.job = "weekly_letter"
    assert tick() == (f"analytics/newsletter {WEEK}: there is no job newsletter", [])
    with pytest.raises(ConsumerFault, match="ask team:analytics"):
        DagsterConsumer(url=f"http://{server.address}").start(NEWSLETTER, WEEK)
    server.job = "newsletter"
    assert tick()[1] == [WEEK], "it is called again"


def test_an_unreachable_consumer_is_called_again(server: WebServer) -> None:
    consumer = DagsterConsumer(url=f"http://{server.address}")
    server.status = 503
    result = call(consumer, NEWSLETTER, [WEEK, NEXT])
    assert list(result.faults) == [WEEK], "no further one is tried"
    assert isinstance(result.faults[WEEK], ConsumerUnreachable)
    server.status = 403
    refused = call(consumer, NEWSLETTER, [WEEK, NEXT])
    assert [type(fault) for fault in refused.faults.values()] == [ConsumerFault, ConsumerFault]
    server.status = 200
    assert list(call(consumer, NEWSLETTER, [WEEK, NEXT]).runs) == [WEEK, NEXT]
    with pytest.raises(ConsumerUnreachable, match="nothing answers"):
        DagsterConsumer(url="http://127.0.0.1:9").start(NEWSLETTER, WEEK)


def test_every_call_names_a_job_that_exists() -> None:
    jobs = {job.name for job in analytics_definitions().resolve_all_job_defs()}
    for what in CALLS:
        assert (what.location, what.job in jobs) == (code_locations.ANALYTICS, True), what
        assert EVERY[what.dataset].grain is what.grain


def test_the_other_team_relies_on_declared_columns() -> None:
    """What it reads is in the contracts, and the contracts name it: whoever changes one side sees the other."""
    types = {"STRING": "string", "BIGINT": "long", "DOUBLE": "double", "INT": "integer"}
    for upstream in gold.UPSTREAM:
        contract = EVERY[upstream.dataset]
        declared = {column.name: types.get(column.type) for column in contract.columns}
        assert upstream.columns.items() <= declared.items()
        assert upstream.owner == contract.owner
        assert "team:analytics" in (contract.owner, *contract.consumers)


def test_the_other_location_has_its_own_dependencies(tmp_path: Path) -> None:
    """Its process imports nothing of the platform but the storage that Dagster's configuration names."""
    project = code_locations.ROOT / "analytics"
    if not (project / ".venv" / "bin" / "python").exists():
        pytest.skip("needs analytics/.venv: make setup")
    home = dagster_home.render(config.load({"BLOGDATA_HOME": str(tmp_path)}))
    code = (
        "import importlib.util, sys, analytics.definitions as d; d.defs();"
        "from dagster import DagsterInstance; DagsterInstance.get().dispose();"
        "ours = ('lake', 'publish', 'patterns', 'quality', 'sensors', 'services', 'definitions');"
        "print([n for n in ('pyspark', 'delta', 'great_expectations') if importlib.util.find_spec(n)],"
        "sorted({n for n in sys.modules if n.split('.')[0] in ours} - {'services'}))"
    )
    done = subprocess.run(
        [project / "interpreter", "-c", code],
        cwd=code_locations.ROOT,
        env={**os.environ, "DAGSTER_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "[] ['services.dagster_internals', 'services.dagster_storage']", done.stderr


def test_a_broken_location_leaves_the_other_loaded(tmp_path: Path) -> None:
    """Each location is loaded in its own process: the error of one is not the end of the other."""
    project = code_locations.ROOT / "analytics"
    if not (project / ".venv" / "bin" / "python").exists():
        pytest.skip("needs analytics/.venv: make setup")
    (tmp_path / "broken.py").write_text("import not_there\n", encoding="utf-8")
    module = {"executable_path": str(project / "interpreter"), "working_directory": str(code_locations.ROOT)}
    sound = {**module, "module_name": "analytics.definitions", "location_name": "sound"}
    broken = {**module, "module_name": "broken", "location_name": "broken", "working_directory": str(tmp_path)}
    workspace = tmp_path / "workspace.yaml"
    workspace.write_text(json.dumps({"load_from": [{"python_module": broken}, {"python_module": sound}]}))
    command = [sys.executable, "-m", "dagster", "definitions", "validate", "--workspace", str(workspace)]
    home = dagster_home.render(config.load({"BLOGDATA_HOME": str(tmp_path / "home")}))
    environ = {**os.environ, "DAGSTER_HOME": str(home)}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    output = done.stdout + done.stderr
    assert done.returncode != 0
    assert "Validation failed for code location broken" in output
    assert "No module named 'not_there'" in output
    assert "Validation successful for code location sound" in output


def test_without_its_environment_only_the_platform_is_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_locations, "ROOT", tmp_path)
    assert code_locations.options(tmp_path) == ["-m", "definitions"]
    python = tmp_path / "analytics" / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch()
    option, workspace = code_locations.options(tmp_path)
    locations = [one["python_module"] for one in json.loads(Path(workspace).read_text())["load_from"]]
    # The state of sensors is stored by the name of their location, which was this one before there were two.
    assert (option, [one["location_name"] for one in locations]) == ("-w", ["definitions", "analytics"])
    assert locations[1]["executable_path"] == str(tmp_path / "analytics" / "interpreter")
