"""Dagster's storage in PostgreSQL: shared between processes, and the password is in no file."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import psycopg
import pytest
from dagster_postgres import PostgresEventLogStorage, PostgresRunStorage, PostgresScheduleStorage
from sqlalchemy.engine import make_url

from blogdata.operate import config, dagster_home
from blogdata.operate.config import Settings

KEY = dg.AssetKey("thing")


@dg.asset
def thing() -> None: ...


@pytest.fixture
def stored(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A deployment whose Dagster storage is an empty database of its own."""
    monkeypatch.setenv("BLOGDATA_DAGSTER_STORAGE", database.replace("postgresql:", "postgresql+psycopg2:"))
    return config.load(overrides={"BLOGDATA_HOME": str(tmp_path / "home")})


def tables(database: str) -> set[str]:
    with psycopg.connect(database) as connection:
        return {name for (name,) in connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")}


def test_a_run_is_read_by_another_instance_and_no_file_holds_the_password(stored: Settings, database: str) -> None:
    with dagster_home.open_instance(stored) as other:
        run_id = dg.materialize([thing], instance=other).run_id
    with dagster_home.open_instance(stored) as instance:
        assert isinstance(instance.run_storage, PostgresRunStorage)
        assert isinstance(instance.event_log_storage, PostgresEventLogStorage)
        assert isinstance(instance.schedule_storage, PostgresScheduleStorage)
        run = instance.get_run_by_id(run_id)
        assert run is not None
        assert run.status == dg.DagsterRunStatus.SUCCESS
        (materialized,) = instance.fetch_materializations(KEY, limit=9).records
        assert materialized.run_id == run_id
        password = str(make_url(database).password)
        assert password not in f"{instance.get_ref().to_dict()} {dagster_home.storage(stored)}"
    assert {"runs", "event_logs", "job_ticks", "asset_keys"} <= tables(database)
    assert not [file for file in stored.home.rglob("*.db") if "compute_logs" not in file.parts]
    assert not [file for file in stored.home.rglob("*") if file.is_file() and password.encode() in file.read_bytes()]
