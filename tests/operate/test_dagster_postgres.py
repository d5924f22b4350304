"""Dagster's storage in PostgreSQL: shared between processes, and the password is in no file."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import psycopg
import pytest
from dagster_postgres import PostgresEventLogStorage, PostgresRunStorage, PostgresScheduleStorage
from sqlalchemy.engine import make_url

from blogdata.operate import config, dagster_home
from blogdata.operate.config import Settings

KEY = dg.AssetKey("thing")
RUNS = """
import sys
import dagster as dg
from blogdata.operate import config, dagster_home

@dg.asset(name="thing")
def thing() -> None: ...

with dagster_home.open_instance(config.load()) as instance:
    print(dg.materialize([thing], instance=instance).run_id)
"""


@pytest.fixture
def stored(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A deployment whose Dagster storage is an empty database of its own."""
    monkeypatch.setenv("BLOGDATA_DAGSTER_STORAGE", database.replace("postgresql:", "postgresql+psycopg2:"))
    return config.load(overrides={"BLOGDATA_HOME": str(tmp_path / "home")})


@pytest.fixture
def instance(stored: Settings) -> Iterator[dg.DagsterInstance]:
    with dagster_home.open_instance(stored) as found:
        yield found


def elsewhere(program: str, stored: Settings) -> subprocess.Popen[str]:
    environment = {**os.environ, "BLOGDATA_HOME": str(stored.home)}
    return subprocess.Popen([sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, text=True)


def tables(database: str) -> dict[str, set[str]]:
    """List the tables of a database by schema."""
    with psycopg.connect(database) as connection:
        rows: list[tuple[Any, ...]] = connection.execute(
            "SELECT schemaname, tablename FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
        ).fetchall()
    return {schema: {table for other, table in rows if other == schema} for schema, _ in rows}


def test_one_processs_run_is_read_by_another(stored: Settings, database: str) -> None:
    with elsewhere(RUNS, stored) as process:
        run_id = process.communicate(timeout=300)[0].strip()
    with dagster_home.open_instance(stored) as instance:
        assert isinstance(instance.run_storage, PostgresRunStorage)
        assert isinstance(instance.event_log_storage, PostgresEventLogStorage)
        assert isinstance(instance.schedule_storage, PostgresScheduleStorage)
        run = instance.get_run_by_id(run_id)
        assert run is not None
        assert run.status == dg.DagsterRunStatus.SUCCESS
        (materialized,) = instance.fetch_materializations(KEY, limit=9).records
        assert materialized.run_id == run_id
    found = tables(database)
    assert {"runs", "event_logs", "job_ticks", "asset_keys"} <= found["public"]
    assert not [file for file in stored.home.rglob("*.db") if "compute_logs" not in file.parts]


def test_no_file_or_instance_reference_holds_the_password(
    stored: Settings, database: str, instance: dg.DagsterInstance
) -> None:
    password = str(make_url(database).password)
    assert password not in str(instance.get_ref().to_dict())
    assert password not in dagster_home.storage(stored)
    assert not [file for file in stored.home.rglob("*") if file.is_file() and password.encode() in file.read_bytes()]
