"""A run whose process is no more ends as failed; one that lives goes on, whatever the clock says."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator

import dagster as dg
import psutil
import pytest
from dagster._core.events import EngineEventData
from dagster._core.test_utils import create_run_for_test

from orchestration import dead_runs


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    """An instance of its own."""
    with dg.DagsterInstance.ephemeral() as made:
        yield made


def under_way(instance: dg.DagsterInstance, pid: int) -> dg.DagsterRun:
    """A run that a process has begun, and noted itself for."""
    run = create_run_for_test(instance, status=dg.DagsterRunStatus.STARTED)
    instance.report_engine_event("begun", run, EngineEventData({"pid": dg.MetadataValue.text(str(pid))}))
    return run


def status(instance: dg.DagsterInstance, run: dg.DagsterRun) -> dg.DagsterRunStatus:
    """How the run stands now."""
    found = instance.get_run_by_id(run.run_id)
    assert found is not None
    return found.status


@pytest.mark.parametrize("seconds", [-3600, 0, 30])
def test_a_run_whose_process_lives_goes_on_though_the_clock_is_set(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch, seconds: int
) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        run = under_way(instance, process.pid)
        booted = psutil.boot_time()
        monkeypatch.setattr("psutil._pslinux.boot_time", lambda: booted + seconds)
        assert dead_runs.settle(instance) == []
        assert status(instance, run) == dg.DagsterRunStatus.STARTED
        process.communicate(b"")


def test_a_run_whose_process_was_killed_has_failed(instance: dg.DagsterInstance) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        run = under_way(instance, process.pid)
        process.kill()
        process.wait()
        assert dead_runs.settle(instance) == [run.run_id]
    assert status(instance, run) == dg.DagsterRunStatus.FAILURE
    assert dead_runs.settle(instance) == []


def test_a_process_that_got_the_number_later_is_another_one(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted = psutil.Process().create_time() - dead_runs.CLOCK_SECONDS - 1
    monkeypatch.setattr(time, "time", lambda: noted)
    run = under_way(instance, os.getpid())
    monkeypatch.undo()
    assert dead_runs.settle(instance) == [run.run_id]
