"""Kills processes for tests."""

from __future__ import annotations

import os
import signal
import time

from blogdata.services import postgres, processes
from blogdata.services.config import Settings
from blogdata.services.processes import ProcessIdentity

DYING_RUN = """
import os, signal
import dagster as dg
from dagster._core.test_utils import create_run_for_test
from blogdata.cli.outcome import Outcome
from blogdata.cli.pipeline import Pipeline
from blogdata.orchestration import dead_runs
from blogdata.services.config import load
with Pipeline(load())._running(Outcome()) as instance:
    create_run_for_test(instance, status=dg.DagsterRunStatus.STARTED, tags=dead_runs.own())
    os.kill(os.getpid(), signal.SIGKILL)
"""
"""A program whose process is killed while its run of the deployment counts as under way."""


def kill(process: ProcessIdentity | None) -> None:
    """Kill a process with SIGKILL, as a machine out of memory does, and wait until it is gone."""
    assert process is not None
    os.kill(process.pid, signal.SIGKILL)
    deadline = time.monotonic() + 300
    while processes.is_alive(process):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def kill_postgres(settings: Settings) -> None:
    """Kill the PostgreSQL server of a deployment."""
    pid = postgres.status(settings).pid
    assert pid is not None
    kill(processes.identify(pid))
