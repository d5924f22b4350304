"""Dagster's storage: the event log with open connections has the files of Dagster's own; or a PostgreSQL database."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.run_coordinator import QueuedRunCoordinator
from dagster_postgres import PostgresEventLogStorage, PostgresRunStorage, PostgresScheduleStorage
from sqlalchemy.engine import make_url

from blogdata.operate import config, dagster_home
from blogdata.operate.config import Settings
from blogdata.operate.dagster_storage import KeptEventLog

KEY = dg.AssetKey("thing")


@pytest.fixture(scope="module")
def home(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return dagster_home.render(replace(settings, home=tmp_path_factory.mktemp('a "quoted" folder')))


@pytest.fixture(scope="module")
def instance(home: Path) -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.from_config(str(home)) as found:
        yield found


def tell(instance: dg.DagsterInstance, run: str, count: int = 1) -> None:
    for number in range(count):
        instance.report_engine_event(str(number), job_name="job", run_id=run)


def messages(instance: dg.DagsterInstance, run: str) -> list[str]:
    return [entry.get_dagster_event().message or "" for entry in instance.all_logs(run)]


def run_once(instance: dg.DagsterInstance) -> str:
    @dg.asset(name="thing", check_specs=[dg.AssetCheckSpec("fine", asset="thing")])
    def thing() -> dg.MaterializeResult:  # type: ignore[type-arg]
        return dg.MaterializeResult(check_results=[dg.AssetCheckResult(check_name="fine", passed=True)])

    return dg.materialize([thing], instance=instance).run_id


def test_dagsters_own_storage_shares_the_same_files(instance: dg.DagsterInstance, home: Path, tmp_path: Path) -> None:
    first = run_once(instance)
    (tmp_path / "dagster.yaml").write_text(json.dumps({"storage": {"sqlite": {"base_dir": str(home)}}}))
    with dg.DagsterInstance.from_config(str(tmp_path)) as own:
        assert isinstance(instance.event_log_storage, KeptEventLog)
        assert not isinstance(own.event_log_storage, KeptEventLog)
        assert len(own.fetch_materializations(KEY, limit=9).records) == 1
        assert messages(own, first) == messages(instance, first)
        run = own.get_run_by_id(first)
        assert run is not None
        assert run.status == dg.DagsterRunStatus.SUCCESS
        second = run_once(own)
    assert len(instance.fetch_materializations(KEY, limit=9).records) == 2
    assert messages(instance, second)
    checks = instance.event_log_storage.get_asset_check_execution_history(dg.AssetCheckKey(KEY, "fine"), limit=9)
    assert [check.status.value for check in checks] == ["SUCCEEDED", "SUCCEEDED"]


def test_run_watchers_receive_each_event(instance: dg.DagsterInstance, home: Path) -> None:
    heard: list[str] = []
    all_there = threading.Event()

    def hear(entry: dg.EventLogEntry, _cursor: str) -> None:
        heard.append(entry.get_dagster_event().message or "")
        if len(heard) == 3:
            all_there.set()

    with dg.DagsterInstance.from_config(str(home)) as other:
        tell(instance, "watched")
        other.watch_event_logs("watched", None, hear)
        tell(instance, "watched", 2)
        assert all_there.wait(20), heard
        other.end_watch_event_logs("watched", hear)


def test_dagster_loads_the_rendered_file_with_its_policies(instance: dg.DagsterInstance) -> None:
    limits = instance.get_concurrency_config()
    assert limits.pool_config.default_pool_limit == 1
    assert limits.run_queue_config is not None
    assert limits.run_queue_config.max_concurrent_runs == 5
    assert isinstance(instance.run_coordinator, QueuedRunCoordinator)
    assert (instance.run_retries_enabled, instance.run_monitoring_enabled) == (True, True)
    assert not instance.telemetry_enabled


def test_a_database_is_read_by_another_instance_and_no_file_holds_its_password(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BLOGDATA_DAGSTER_STORAGE", database.replace("postgresql:", "postgresql+psycopg2:"))
    stored = config.load(overrides={"BLOGDATA_HOME": str(tmp_path)})
    with dagster_home.open_instance(stored) as other:
        run_id = run_once(other)
    with dagster_home.open_instance(stored) as instance:
        assert isinstance(instance.run_storage, PostgresRunStorage)
        assert isinstance(instance.event_log_storage, PostgresEventLogStorage)
        assert isinstance(instance.schedule_storage, PostgresScheduleStorage)
        (materialized,) = instance.fetch_materializations(KEY, limit=9).records
        assert materialized.run_id == run_id
        password = str(make_url(database).password)
        assert password not in f"{instance.get_ref().to_dict()} {dagster_home.storage(stored)}"
    assert not [file for file in tmp_path.rglob("*.db") if "compute_logs" not in file.parts]
    assert not [file for file in tmp_path.rglob("*") if file.is_file() and password.encode() in file.read_bytes()]
