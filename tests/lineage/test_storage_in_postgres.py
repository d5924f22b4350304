"""`blogdata run` with Dagster's storage in PostgreSQL: runs are recorded there, and light commands stay light."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from blogdata.services.spark_connect import SparkServer
from lineage.deployment import Deployment, event


@pytest.fixture
def stored(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark_server: SparkServer) -> Deployment:
    """A deployment whose Dagster storage is a separate empty database."""
    monkeypatch.setenv("BLOGDATA_DAGSTER_STORAGE", database)
    return Deployment.create(tmp_path / "home", spark_server.url)


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
