"""`blogdata run` with Dagster's storage in PostgreSQL: runs are recorded there, and light commands stay light."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import dagster as dg
import psycopg
import pytest

from blogdata.orchestration import dead_runs
from blogdata.services import dagster_home
from blogdata.services.spark_connect import SparkServer
from kills import DYING_RUN
from lineage.deployment import Deployment, event

LIGHT = """
import sys
from blogdata.cli.main import main
try:
    main()
finally:
    print(sorted({"sqlalchemy", "psycopg2"} & {*sys.modules}))
"""


@pytest.fixture
def stored(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark_server: SparkServer) -> Deployment:
    """A deployment whose Dagster storage is a separate empty database."""
    monkeypatch.setenv("BLOGDATA_DAGSTER_STORAGE", database)
    return Deployment.create(tmp_path / "home", spark_server.url)


def python(deployment: Deployment, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ, "BLOGDATA_HOME": str(deployment.settings.home), "PYTHONPATH": ":".join(sys.path),
    }  # fmt: skip
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)


def test_runs_are_recorded_only_in_the_database(stored: Deployment, database: str) -> None:
    stored.land("2026-01-05T10", [event("10:05", "/a")])
    outcome = stored.run(select=("bronze.visits",))
    stored.close()
    assert outcome.ok, outcome.problems
    with psycopg.connect(database) as connection:
        assert connection.execute("SELECT status FROM dagster.runs").fetchall() == [("SUCCESS",)]
        key = '["bronze", "visits"]'
        materialized = connection.execute("SELECT partition FROM dagster.event_logs WHERE asset_key = %s", [key])
        assert ("2026-01-05T10",) in materialized.fetchall()
    assert not (stored.settings.home / "dagster" / "history").exists()


@pytest.mark.campaign
def test_idle_runs_stay_light_and_settle_killed_runs(stored: Deployment) -> None:
    light = python(stored, LIGHT, "run")
    assert light.stdout.splitlines()[-1] == "[]", light.stderr
    assert python(stored, DYING_RUN).returncode == -signal.SIGKILL
    (left,) = dagster_home.left_behind(stored.settings)
    settles = python(stored, LIGHT, "run")
    assert settles.stdout.startswith("nothing to do"), settles.stderr
    assert not left.exists()
    with dagster_home.open_instance(stored.settings) as instance:
        assert not instance.get_runs(dg.RunsFilter(statuses=list(dead_runs.UNDER_WAY)))
        assert [run.status for run in instance.get_runs()] == [dg.DagsterRunStatus.FAILURE]
