"""Processes of one service: none outlives the process that started them."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

SECONDS = 30
TIED = (
    "import os, time; from blogdata.operate import ends_with_parent; ends_with_parent.end_with_parent(); "
    "os.write(1, b'tied\\n'); time.sleep(600)"  # at once: the pipe is shared, and what prints may print in parts
)
PARENT = f"""
import os, sys, time
from blogdata.cli.ui_command import Supervisor
running = Supervisor()
for name in ("one", "other"):
    running.start(name, [sys.executable, "-c", {TIED!r}], os.environ)
time.sleep(600)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_no_process_outlives_a_parent_that_is_killed(tmp_path: Path, number: signal.Signals) -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    assert [parent.stdout.readline() for _ in range(2)] == ["tied\n"] * 2
    family = psutil.Process(parent.pid).children(recursive=True)
    assert len(family) == 2
    parent.send_signal(number)
    parent.wait(SECONDS)
    parent.stdout.close()
    assert not psutil.wait_procs(family, timeout=SECONDS)[1]
