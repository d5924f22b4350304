"""A run whose process has died ends as failed; a living one continues, whatever the clock says."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from types import MappingProxyType

import dagster as dg
import psutil
import pytest
from dagster._core.events import EngineEventData
from dagster._core.test_utils import create_run_for_test

from blogdata.runs import killed_runs
from sensors import instigators
from sensors.watching import end_dead_runs


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        yield made


def under_way(instance: dg.DagsterInstance, pid: int, tags: Mapping[str, str] = MappingProxyType({})) -> dg.DagsterRun:
    """A run that a process has begun, with the note of its process."""
    run: dg.DagsterRun = create_run_for_test(instance, status=dg.DagsterRunStatus.STARTED, tags=dict(tags))
    instance.report_engine_event("begun", run, EngineEventData({"pid": dg.MetadataValue.text(str(pid))}))
    return run


def status(instance: dg.DagsterInstance, run: dg.DagsterRun) -> dg.DagsterRunStatus:
    stored = instance.get_run_by_id(run.run_id)
    assert stored is not None
    return stored.status


@pytest.mark.parametrize("seconds", [-3600, 0, 30])
def test_a_clock_change_ends_no_living_run(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch, seconds: int
) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        run = under_way(instance, process.pid)
        booted = psutil.boot_time()
        monkeypatch.setattr("psutil._pslinux.boot_time", lambda: booted + seconds)
        assert killed_runs.settle(instance, launched=True) == []
        assert status(instance, run) == dg.DagsterRunStatus.STARTED
        process.communicate(b"")


@pytest.mark.parametrize("begun", [dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.STARTED])
def test_a_run_killed_before_it_began_has_failed(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch, begun: dg.DagsterRunStatus
) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        monkeypatch.setattr(os, "getpid", lambda: process.pid)
        tags = killed_runs.own()
        monkeypatch.undo()
        run: dg.DagsterRun = create_run_for_test(instance, status=begun, tags=tags)
        assert killed_runs.settle(instance, launched=True) == []
        process.kill()
        process.wait()
        again = create_run_for_test(instance, status=begun, tags=tags, parent_run_id=run.run_id, root_run_id=run.run_id)
        assert killed_runs.settle(instance, launched=True) == [run.run_id]
    assert status(instance, run) == dg.DagsterRunStatus.FAILURE
    assert status(instance, again) == begun, "Dagster will begin the retry, whoever began the first run"


def test_a_reused_process_number_keeps_no_run_alive(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted = psutil.Process().create_time() - killed_runs.CLOCK_SECONDS - 1
    monkeypatch.setattr(time, "time", lambda: noted)
    run = under_way(instance, os.getpid())
    monkeypatch.undo()
    assert killed_runs.settle(instance, launched=True) == [run.run_id]


def killed(instance: dg.DagsterInstance, tags: Mapping[str, str] = MappingProxyType({})) -> dg.DagsterRun:
    """A run whose process was killed."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        run = under_way(instance, process.pid, tags)
        process.kill()
    return run


def test_a_run_is_settled_on_its_own_host_only(instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "another")
    typed = killed(instance, tags=killed_runs.own())
    monkeypatch.undo()
    launched = killed(instance)
    assert killed_runs.settle(instance, launched=False) == []
    assert killed_runs.settle(instance, launched=True) == [launched.run_id]
    monkeypatch.setattr("socket.gethostname", lambda: "another")
    monkeypatch.setattr(killed_runs, "_lives", lambda pid, noted_at: False)
    assert killed_runs.settle(instance, launched=False) == [typed.run_id]


def test_daemon_ends_dead_runs_by_default(instance: dg.DagsterInstance) -> None:
    run = killed(instance)
    assert end_dead_runs.default_status == dg.DefaultSensorStatus.RUNNING
    assert end_dead_runs in instigators(automatic=False)[0]
    tick = end_dead_runs.evaluate_tick(dg.build_sensor_context(instance=instance))
    assert tick.skip_message == "1 runs were dead"
    assert status(instance, run) == dg.DagsterRunStatus.FAILURE
    assert killed_runs.settle(instance, launched=True) == []
