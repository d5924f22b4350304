"""`blogdata ui` ends as a service supervisor expects, and reports whether the daemon works; without Spark."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import stat
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from blogdata.operate import config, dagster_home
from blogdata.operate.processes import free_port

pytestmark = pytest.mark.slow
SECONDS = 240
COMMAND = [sys.executable, "-m", "blogdata"]


class Ui:
    """A `blogdata ui` with its own home; no Spark is started because the configured server is remote."""

    def __init__(self, home: Path) -> None:
        own = ("BLOGDATA_", "SPARK_", "DAGSTER_", "ANALYTICS_")
        environ = {name: value for name, value in os.environ.items() if not name.startswith(own)}
        self.home = home
        self.environ = {**environ, "BLOGDATA_HOME": str(home), "SPARK_REMOTE": "sc://127.0.0.1:1"}
        self.port = free_port()
        self.log = home.parent / "ui.log"
        with self.log.open("wb") as log:
            command = [*COMMAND, "ui", "--port", str(self.port)]
            self.process = subprocess.Popen(command, env=self.environ, stdout=log, stderr=subprocess.STDOUT)

    def status(self) -> str:
        """Return the line of `blogdata status` about the UI."""
        done = subprocess.run([*COMMAND, "status"], env=self.environ, capture_output=True, text=True, check=False)
        return next(line for line in done.stdout.splitlines() if line.startswith("ui"))

    def health(self) -> tuple[int, str]:
        try:
            url = f"http://127.0.0.1:{self.port}{dagster_home.HEALTH}"
            with urllib.request.urlopen(url, timeout=SECONDS) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()
        except OSError as error:
            return 0, str(error)

    def until(self, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + SECONDS
        while not holds():
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.5)

    def family(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def words(self) -> dict[psutil.Process, list[str]]:
        """List the command lines of its processes, except those that end meanwhile, such as replaced code servers."""
        words = {}
        for process in self.family():
            with contextlib.suppress(psutil.Error):
                words[process] = process.cmdline()
        return words


@pytest.fixture
def ui(tmp_path: Path) -> Iterator[Ui]:
    found = Ui(tmp_path / "home")
    yield found
    if found.process.poll() is None:
        found.process.kill()
        found.process.wait()


@pytest.mark.campaign
def test_a_killed_daemon_ends_everything_with_a_reason(ui: Ui) -> None:
    ui.until(lambda: ui.health() == (200, "ok\n"))
    assert ui.status().startswith("ui       running")
    with dagster_home.open_instance(config.load(ui.environ)) as instance:
        now = time.time()
        assert dagster_home.is_beating(instance, now)
        # A process that hangs, or was killed together with the others, leaves no file.
        assert not dagster_home.is_beating(instance, now + 2 * dagster_home.PROCESS_SECONDS)
    assert not [one for one in psutil.net_connections("tcp") if one.pid in {p.pid for p in ui.family()}]
    said = ui.log.read_text()
    # It started without a fault: the file has only a few lines of its own.
    assert len(said.splitlines()) < 10, said
    assert not re.search(r"DEBUG|INFO|\x1b", said), said
    family = ui.family()
    servers = [words for words in ui.words().values() if "code-server" in words]
    folders = {Path(words[words.index("--socket") + 1]).parent for words in servers}
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in folders] == [0o700]
    (daemon,) = [one for one, words in ui.words().items() if "dagster-daemon" in words]
    daemon.kill()
    assert ui.process.wait(SECONDS) == 1
    assert "error: Dagster's daemon ended by itself: killed by SIGKILL" in ui.log.read_text()
    assert not psutil.wait_procs(family, timeout=60)[1]
    assert ui.status().startswith("ui       stopped")


def test_a_request_to_end_is_no_fault(ui: Ui) -> None:
    ui.until(lambda: any("code-server" in words for words in ui.words().values()))
    family = ui.family()
    ui.process.send_signal(signal.SIGTERM)
    assert ui.process.wait(SECONDS) == 0, ui.log.read_text()
    assert not psutil.wait_procs(family, timeout=60)[1]
    assert ui.status().startswith("ui       stopped")
