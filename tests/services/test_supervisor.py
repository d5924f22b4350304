"""Processes of one service: one that ends is named, and none outlives the process that started them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from blogdata.errors import TransientError
from blogdata.services.supervisor import Supervisor

SECONDS = 30
TIED = (
    "import os, time; from blogdata.services import ends_with_parent; ends_with_parent.end_with_parent(); "
    "os.write(1, b'tied\\n'); time.sleep(600)"  # at once: the pipe is shared, and what prints may print in parts
)
PARENT = f"""
import os, sys, time
from blogdata.services.supervisor import Supervisor
running = Supervisor()
for name in ("one", "other"):
    running.start(name, [sys.executable, "-c", {TIED!r}], os.environ)
time.sleep(600)
"""


@pytest.fixture
def running() -> Iterator[Supervisor]:
    found = Supervisor()
    yield found
    found.stop(["good", "bad"], seconds=SECONDS, kill=True)


def watch(running: Supervisor) -> None:
    while True:
        running.check()


@pytest.mark.parametrize(
    ("ends", "how"),
    [
        ("raise SystemExit(3)", "exit code 3"),
        ("pass", "exit code 0"),
        ("import os; os.kill(os.getpid(), 9)", "killed by SIGKILL"),
    ],
)
def test_a_process_that_ends_by_itself_is_named(running: Supervisor, ends: str, how: str) -> None:
    running.start("good", [sys.executable, "-c", "import sys; sys.stdin.read()"], os.environ)
    running.start("bad", [sys.executable, "-c", ends], os.environ)
    with pytest.raises(TransientError, match=f"bad ended by itself: {how}") as found:
        watch(running)
    assert found.value.exit_code == 1, "a supervisor of services starts it again"


def test_stopping_kills_or_leaves_what_does_not_end(running: Supervisor) -> None:
    deaf = [sys.executable, "-c", "import time; time.sleep(600)"]
    for name in ("good", "bad"):
        running.start(name, deaf, os.environ)
    # Other processes of earlier tests may have ended or end just now.
    everyone = psutil.process_iter(["ppid", "cmdline"])
    family = [one for one in everyone if (one.info["ppid"], one.info["cmdline"]) == (os.getpid(), deaf)]
    running.stop(["good"], seconds=0, kill=False)
    assert len([one for one in family if one.is_running() and one.status() != "zombie"]) == 2
    running.stop(["bad"], seconds=0, kill=True)
    (left,) = [one for one in family if one.is_running() and one.status() != "zombie"]
    left.kill()


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
