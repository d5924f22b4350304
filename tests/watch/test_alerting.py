"""People are told what stands once, and again after a while, by every channel on its own."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from alert_servers import Posted, web_server
from blogdata.cli.main import app
from blogdata.errors import PlatformError
from blogdata.errors.finding import Finding, Severity
from blogdata.errors.remedies import Remedy
from blogdata.operate import config
from blogdata.watch import alerting, doctor
from blogdata.watch.alerting import AlertsNotSent, Told, due
from published import deployment, land

W, C = Severity.WARNING, Severity.CRITICAL
DAY = 86_400.0
SECRET = "T0K3N/with-a secret@x"
HOSTILE = "gold.pages\r\nBcc: v@example.org <!channel> @everyone \x1b[31m\u202e\udcff"
TELL = """
import os, sys
from blogdata.watch import alerting, doctor
from blogdata.operate.config import load

home, dies = sys.argv[1:]
if dies == "dies":
    alerting.write_atomically = lambda *_: os.kill(os.getpid(), 9)
print(alerting.tell(load({"BLOGDATA_HOME": home})))
"""


@pytest.fixture
def hook() -> Iterator[Posted]:
    """A web server that receives messages."""
    with web_server() as posted:
        yield posted


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A deployment with an overdue hour, and a secret."""
    land(deployment(tmp_path / "home"), "visits", "2026-01-05T03", {"a.json": "{}\n"}, flag=False)
    secret = tmp_path / "home" / "secrets" / "hook"
    secret.parent.mkdir()
    secret.write_text(SECRET)
    secret.chmod(0o600)
    return tmp_path / "home"


def channels(home: Path, *tables: str) -> None:
    (home / "blogdata.toml").write_text("".join(f"[[alerts]]\n{table}\n" for table in tables))


def tell(home: Path) -> int:
    return alerting.tell(config.load({"BLOGDATA_HOME": str(home)}))


def teller(home: Path, how: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", TELL, str(home), how], stdout=subprocess.PIPE, text=True)


def finding(severity: Severity = W, what: str = "an hour waits", partition: str | None = None) -> Finding:
    fixed = {"source": "waiting", "dataset": "silver.visits", "owner": "team:a"}
    return Finding(**fixed, severity=severity, what=what, remedy=Remedy("look"), partition=partition)


@pytest.mark.parametrize(
    ("holds", "sent"),
    [
        ([(at, W) for at in (0.0, 60.0, DAY - 1, DAY, DAY + 60)], [0.0, DAY]),
        ([(0.0, W), (60.0, C), (120.0, W), (180.0, C)], [0.0, 60.0]),
        ([(10 * DAY, W), (DAY, W)], [10 * DAY, DAY]),
        ([(0.0, W), (60.0, None), (120.0, W), (DAY, W)], [0.0, DAY]),
    ],
    ids=["once until repetition", "more urgent again", "clock set back", "comes and goes"],
)
def test_a_finding_is_told(holds: list[tuple[float, Severity | None]], sent: list[float]) -> None:
    told: dict[str, Told] = {}
    found = []
    for now, severity in holds:
        new, told = due(told, [] if severity is None else [finding(severity)], now=now, repeat_after=DAY)
        found += [now] * len(new)
    assert found == sent


def test_a_message_is_plain_lines_that_notify_nobody(home: Path, hook: Posted, monkeypatch: pytest.MonkeyPatch) -> None:
    channels(home, f'name = "hook"\naddress = "{hook.channel}"')
    standing = [finding(C, HOSTILE, HOSTILE), finding(C, "another", HOSTILE)]
    standing += [finding(W, "x" * 999, f"{n}") for n in range(60)]
    monkeypatch.setattr("blogdata.watch.findings.standing", lambda _: standing)
    assert tell(home) == 1
    body, *others = hook.bodies
    clean = "gold.pages Bcc: v@example.org < !channel> @ everyone [31m"
    assert body["title"] == f"[critical] silver.visits {clean} : waiting and 60 more [1/{1 + len(others)}]"
    assert body["type"] == "failure"
    shown = f"[critical] silver.visits {clean} : waiting: {clean}\n  next:  look\n  owner: team:a\n[warning] "
    assert body["message"].startswith(shown)
    assert all(len(part["message"]) <= 32_768 for part in hook.bodies)
    assert "".join(part["message"] for part in hook.bodies).count("[warning]") >= 60 - len(others), "none is cut off"
    assert tell(home) == 0


def test_severity_and_owner_choose_the_channels(home: Path, hook: Posted) -> None:
    rules = ("", 'least_severity = "critical"', 'owners = ["team:platform"]', 'owners = ["team:nobody"]')
    channels(home, *(f'name = "c{n}"\naddress = "{hook.channel}/{n}"\n{rule}' for n, rule in enumerate(rules)))
    assert [tell(home) for _ in range(2)] == [2, 0]
    assert hook.paths == ["/hook/0", "/hook/2"]
    assert hook.bodies[0]["title"] == "[warning] bronze.visits: overdue"


def test_a_failing_channel_keeps_back_no_other_and_is_tried_again(
    home: Path, hook: Posted, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    elsewhere = {"Location": hook.address}
    hook.answers = [(403, {}), (302, elsewhere), (204, {}), (204, {})]
    channels(
        home,
        f'name = "refused"\naddress = "{hook.channel}/{{secret}}"\nsecret = "hook"',
        f'name = "moved"\naddress = "{hook.channel}"',
        'name = "unreachable"\naddress = "json://robot:{secret}@127.0.0.1:1"\nsecret = "hook"',
        'name = "unknown"\naddress = "nosuch://{secret}"\nsecret = "hook"',
        'name = "whole"\naddress = "{secret}"\nsecret = "hook"',
        'name = "without"\naddress = "slack://{secret}"\nsecret = "nothing"',
        f'name = "good"\naddress = "{hook.channel}"',
    )
    with pytest.raises(AlertsNotSent, match=r"channel refused: .*error=403.*channel moved: .*error=302") as failed:
        tell(home)
    settings = config.load({"BLOGDATA_HOME": str(home)})
    refused = ["refused", "moved", "unreachable", "unknown", "whole", "without"]
    assert re.findall(r"channel (\w+): ", failed.value.what) == refused[:-1]
    assert "the secret nothing does not exist" in failed.value.what
    assert len(hook.bodies) == 1
    with pytest.raises(AlertsNotSent):
        tell(home)
    assert len(hook.bodies) == 3
    assert hook.paths[-2] == "/hook/T0K3N%2Fwith-a%20secret@x"
    found = {one.name: one for one in doctor.examine(settings) if one.name.startswith("alerts")}
    assert [name for name, one in found.items() if not one.ok] == ["alerts unknown", "alerts whole", "alerts without"]
    shown = f"{failed.value} {settings} {found} {caplog.text} {capfd.readouterr()}"
    assert "T0K3N" not in shown


@pytest.mark.campaign
def test_a_kill_before_noting_sends_again_and_two_at_once_send_once(home: Path, hook: Posted) -> None:
    channels(home, f'name = "hook"\naddress = "{hook.channel}"')
    killed = teller(home, "dies")
    killed.communicate(timeout=90)
    assert (killed.returncode, len(hook.bodies)) == (-signal.SIGKILL, 1)
    both = [teller(home, "lives") for _ in range(2)]
    assert sorted(one.communicate(timeout=90)[0] for one in both) == ["0\n", "1\n"]
    assert len(hook.bodies) == 2


def test_a_damaged_record_is_an_error(home: Path) -> None:
    (home / "alerts.json").write_text('{"told": []}')
    with pytest.raises(PlatformError, match="record of alerts"):
        tell(home)


def test_a_run_tells_what_status_shows(home: Path, hook: Posted, monkeypatch: pytest.MonkeyPatch) -> None:
    def typed(*arguments: str) -> Any:
        return CliRunner().invoke(app, arguments)

    monkeypatch.setenv("BLOGDATA_HOME", str(home))
    channels(home, f'name = "hook"\naddress = "{hook.channel}"')
    hook.answers = [(404, {})]
    failed = typed("run", "--json")
    assert (failed.exit_code, json.loads(failed.stdout)["ok"]) == (1, True)
    assert "channel hook: " in failed.stderr
    done = typed("run", "--json")
    assert (done.exit_code, len(hook.bodies)) == (0, 1)
    assert "alert messages sent: 1" in done.stderr
    assert 'blogdata_findings{severity="warning"} 1.0' in typed("metrics").stdout
    shown = typed("status")
    assert "findings warning  1 to look at\n" in shown.stdout
    assert "note     bronze.visits: overdue: " in shown.stdout
    assert (shown.exit_code, len(hook.bodies)) == (0, 1)
    land(deployment(home), "visits", "2026-01-05T03", {})
    assert json.loads(typed("status", "--json").stdout)[-1]["state"] == "none"
