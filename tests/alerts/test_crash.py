"""A process killed between sending and recording sends again; two concurrent processes send once."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from alert_servers import Posted
from blogdata.orchestration import alerting
from blogdata.services import deployment_alerts
from blogdata.services.config import load
from published import deployment, land
from quality.contracts import GRAPH

TELL = """
import os, sys
from blogdata.alerts.record import AlertRecord
from blogdata.orchestration import alerting
from quality.contracts import GRAPH
from blogdata.services.config import load

home, dies = sys.argv[1:]
if dies == "dies":
    taken = AlertRecord.taken
    def die(*arguments):
        os.kill(os.getpid(), 9)
        taken(*arguments)
    AlertRecord.taken = die
done = alerting.tell(load({"BLOGDATA_HOME": home}), GRAPH, (), ())
print(done.sent)
"""


def teller(home: Path, how: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", TELL, str(home), how], stdout=subprocess.PIPE, text=True)


def overdue(tmp_path: Path, hook: Posted) -> Path:
    """A deployment where an hour is overdue, and a webhook."""
    home = tmp_path / "home"
    land(deployment(home), "visits", "2026-01-05T03", {"a.json": "{}\n"}, flag=False)
    (home / "blogdata.toml").write_text(f'[[alerts]]\nchannel = "webhook"\naddress = "{hook.address}"\n')
    return home


def test_a_kill_before_recording_sends_again(tmp_path: Path, hook: Posted) -> None:
    home = overdue(tmp_path, hook)
    killed = teller(home, "dies")
    killed.communicate(timeout=60)
    assert (killed.returncode, len(hook.bodies)) == (-signal.SIGKILL, 1)
    settings = load({"BLOGDATA_HOME": str(home)})
    assert deployment_alerts.record(settings).messages(9) == []
    assert [alerting.tell(settings, GRAPH, (), ()).sent for _ in range(2)] == [1, 0]
    assert len(hook.bodies) == 2
    # The receiver can recognize the repeated message by its identity.
    assert len({body["id"] for body in hook.bodies}) == 1


def test_two_processes_at_once_send_once(tmp_path: Path, hook: Posted) -> None:
    home = overdue(tmp_path, hook)
    hook.hangs_seconds = 1.0
    both = [teller(home, "lives") for _ in range(2)]
    said: list[Any] = [one.communicate(timeout=90)[0] for one in both]
    assert (sorted(said), len(hook.bodies)) == (["0\n", "1\n"], 1)
