from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from dagster import DagsterInstance
from dagster._core.run_coordinator import QueuedRunCoordinator

from blogdata.operate import dagster_home
from blogdata.operate.config import Settings


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
