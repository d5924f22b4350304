"""`blogdata ui` ends as a service supervisor expects, and reports whether the daemon works; without Spark."""

from __future__ import annotations

import contextlib
import re
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from blogdata.operate import config, dagster_home
from ui.served import Served, environment

SECONDS = 240
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


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """A deployment that starts no Spark, because the configured server is remote."""
    found = Served(home=tmp_path, environ={**environment(tmp_path), "SPARK_REMOTE": "sc://127.0.0.1:1"})
    yield found
    if found.process is not None and found.process.poll() is None:
        found.process.kill()
        found.process.wait()


def status(served: Served) -> str:
    return next(line for line in served.call("status").stdout.splitlines() if line.startswith("ui"))


def words(family: list[psutil.Process]) -> dict[psutil.Process, list[str]]:
    """List the command lines of processes, except those that end meanwhile, such as replaced code servers."""
    found = {}
    for process in family:
        with contextlib.suppress(psutil.Error):
            found[process] = process.cmdline()
    return found


def family_of(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    return psutil.Process(process.pid).children(recursive=True)


@pytest.mark.campaign
def test_a_killed_daemon_ends_everything_with_a_reason(served: Served) -> None:
    process = served.begin()
    served.until(process, lambda: status(served).startswith("ui       running  daemon at work"))
    with dagster_home.open_instance(config.load(served.environ)) as instance:
        now = time.time()
        assert dagster_home.is_beating(instance, now)
        # A process that hangs, or was killed together with the others, leaves no file.
        assert not dagster_home.is_beating(instance, now + 2 * dagster_home.PROCESS_SECONDS)
    family = family_of(process)
    assert not [one for one in psutil.net_connections("tcp") if one.pid in {p.pid for p in family}]
    # It started without a fault: the file has only a few lines of its own.
    assert len(served.log.splitlines()) < 10, served.log
    assert not re.search(r"DEBUG|INFO|\x1b", served.log), served.log
    lines = words(family)
    servers = [words for words in lines.values() if "code-server" in words]
    folders = {Path(words[words.index("--socket") + 1]).parent for words in servers}
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in folders] == [0o700]
    (daemon,) = [one for one, words in lines.items() if "dagster-daemon" in words]
    daemon.kill()
    assert process.wait(SECONDS) == 1
    assert "error: Dagster's daemon ended by itself: killed by SIGKILL" in served.log
    assert not psutil.wait_procs(family, timeout=60)[1]
    assert status(served).startswith("ui       stopped")


@pytest.mark.campaign
def test_a_request_to_end_is_no_fault(served: Served) -> None:
    process = served.begin()
    served.until(process, lambda: any("code-server" in line for line in words(family_of(process)).values()))
    family = family_of(process)
    process.send_signal(signal.SIGTERM)
    assert process.wait(SECONDS) == 0, served.log
    assert not psutil.wait_procs(family, timeout=60)[1]
    assert status(served).startswith("ui       stopped")


@pytest.mark.parametrize("number", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.campaign)])
def test_no_process_outlives_a_parent_that_is_killed(tmp_path: Path, number: signal.Signals) -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    assert [parent.stdout.readline() for _ in range(2)] == ["tied\n"] * 2
    family = psutil.Process(parent.pid).children(recursive=True)
    assert len(family) == 2
    parent.send_signal(number)
    parent.wait(60)
    parent.stdout.close()
    assert not psutil.wait_procs(family, timeout=60)[1]
