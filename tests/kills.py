"""Kills processes for tests."""

from __future__ import annotations

import os
import signal
import time

from blogdata.operate import postgres, processes
from blogdata.operate.config import Settings
from blogdata.operate.processes import ProcessIdentity


def kill(process: ProcessIdentity | None) -> None:
    """Kill a process with SIGKILL, as a machine out of memory does, and wait until it is gone."""
    assert process is not None
    os.kill(process.pid, signal.SIGKILL)
    deadline = time.monotonic() + 300
    while processes.is_alive(process):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def kill_postgres(settings: Settings) -> None:
    pid = postgres.status(settings).pid
    assert pid is not None
    kill(processes.identify(pid))
