from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path

import pytest
from dagster import DagsterInstance
from dagster._core.run_coordinator import QueuedRunCoordinator

from blogdata.services import dagster_home
from blogdata.services.config import Settings


def test_dagster_loads_the_rendered_file_with_its_policies(settings: Settings, tmp_path: Path) -> None:
    home = tmp_path / 'a "quoted" folder'
    home.mkdir()
    folder = dagster_home.render(replace(settings, home=home))
    with DagsterInstance.from_config(str(folder)) as instance:
        limits = instance.get_concurrency_config()
        assert limits.pool_config.default_pool_limit == 1
        assert limits.run_queue_config is not None
        assert limits.run_queue_config.max_concurrent_runs == 5
        assert isinstance(instance.run_coordinator, QueuedRunCoordinator)
        assert instance.run_retries_enabled
        assert instance.run_monitoring_enabled
        assert not instance.telemetry_enabled
        assert instance.get_runs() == []
    assert (folder / "runs.db").is_file() or list(folder.rglob("*.db"))


def test_only_a_changed_dagster_file_is_rewritten(settings: Settings, tmp_path: Path) -> None:
    mine = replace(settings, home=tmp_path)
    file = dagster_home.render(mine) / "dagster.yaml"
    content, written = file.read_text(), file.stat().st_mtime_ns
    dagster_home.render(mine)
    assert file.stat().st_mtime_ns == written
    file.write_text("telemetry: {enabled: true}\n")
    dagster_home.render(mine)
    assert file.read_text() == content


def test_another_hosts_marker_is_no_killed_run(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = replace(settings, home=tmp_path)
    folder = tmp_path / "dagster" / "executing"
    folder.mkdir(parents=True)
    dead = "999999999 none"
    (folder / f"elsewhere {dead}").touch()
    assert dagster_home.left_behind(mine) == []
    own = [folder / f"{socket.gethostname()} {dead}", folder / dead]
    for file in own:
        file.touch()
    assert sorted(dagster_home.left_behind(mine)) == sorted(own)
    with dagster_home.execution_marker(mine):
        monkeypatch.setattr("socket.gethostname", lambda: "elsewhere")
        assert [file.name for file in dagster_home.left_behind(mine) if file not in own] == [f"elsewhere {dead}"]
