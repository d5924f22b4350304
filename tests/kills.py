"""Processes that tests kill."""

from __future__ import annotations

import os
import signal
import time

from services import postgres, processes
from services.config import Settings
from services.processes import ProcessIdentity


def kill(process: ProcessIdentity | None) -> None:
    """Kill a process as a machine out of memory would, and see it gone."""
    assert process is not None
    os.kill(process.pid, signal.SIGKILL)
    deadline = time.monotonic() + 300
    while processes.is_alive(process):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def kill_postgres(settings: Settings) -> None:
    """Kill the PostgreSQL of a deployment."""
    pid = postgres.status(settings).pid
    assert pid is not None
    kill(processes.identify(pid))
