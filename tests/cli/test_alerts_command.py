"""What a person at a terminal sees of alerts and metrics: `blogdata alerts`, `blogdata run` and `blogdata metrics`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from typer.testing import CliRunner

from alert_servers import Posted, web_server
from blogdata.cli.main import app
from blogdata.errors import ConfigurationError
from published import deployment, land

SECRET = "S3CR3Tpath"


@pytest.fixture
def hook() -> Iterator[Posted]:
    """A web server that receives messages."""
    with web_server() as posted:
        yield posted


@pytest.fixture
def home(tmp_path: Path, hook: Posted, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A deployment with an overdue hour, and a webhook with a secret."""
    home = tmp_path / "home"
    land(deployment(home), "visits", "2026-01-05T03", {"a.json": "{}\n"}, flag=False)
    (home / "secrets").mkdir()
    (home / "secrets" / "hook").write_text(SECRET)
    (home / "secrets" / "hook").chmod(0o600)
    (home / "blogdata.toml").write_text(
        f'[[alerts]]\nchannel = "webhook"\naddress = "{hook.address}/{{secret}}"\nsecret = "hook"\nseconds = 3\n'
        '[[alerts]]\nchannel = "command"\ncommand = ["true"]\nowners = ["team:nobody"]\n'
    )
    monkeypatch.setenv("BLOGDATA_HOME", str(home))
    return home


def typed(*arguments: str) -> Any:
    return CliRunner().invoke(app, arguments)


def test_a_run_tells_and_alerts_shows_it(home: Path, hook: Posted) -> None:
    before = typed("alerts")
    assert "bronze.visits: overdue" in before.stdout
    assert hook.bodies == []
    done = typed("run", "--json")
    assert (done.exit_code, json.loads(done.stdout)["ok"]) == (0, True)
    assert "alert messages sent: 1" in done.stderr
    found = json.loads(typed("alerts", "--json").stdout)
    assert [(one["identity"], one["channels"]) for one in found["standing"]] == [("overdue/bronze.visits", ["webhook"])]
    assert [(one["channel"], one["subject"]) for one in found["sent"]] == [("webhook", hook.bodies[0]["subject"])]
    assert found["failing"] == []


def test_a_failing_channel_fails_the_run(home: Path, hook: Posted) -> None:
    hook.answers = [(404, {})] * 2
    done = typed("run", "--json")
    assert (done.exit_code, json.loads(done.stdout)["ok"]) == (1, True)
    assert "channel webhook: the server answered 404" in done.stderr
    shown = typed("alerts")
    assert shown.exit_code == 1
    assert "channel webhook fails since" in shown.stdout
    assert (
        SECRET not in done.output + shown.output + typed("alerts", "--json").output + typed("alerts", "--test").output
    )
    assert typed("alerts", "--test").exit_code == 0
    # The pause is over.
    assert typed("run", "--json").exit_code == 0
    assert [body["subject"] for body in hook.bodies] == ["[warning] test message", "[warning] bronze.visits: overdue"]


def test_a_test_message_reaches_every_channel(home: Path, hook: Posted) -> None:
    found = json.loads(typed("alerts", "--test", "--json").stdout)
    assert found == [{"channel": name, "ok": True, "error": None} for name in ("webhook", "command")]
    (home / "blogdata.toml").unlink()
    assert "no channel is configured" in typed("alerts", "--test").stdout
    assert "told to" in typed("alerts").stdout
    assert "nobody" in typed("alerts").stdout


def test_metrics_replace_their_file(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "blogdata.prom"
    file.write_text("half a fi")
    assert typed("metrics", "--out", str(file)).exit_code == 0
    names = {family.name for family in text_string_to_metric_families(file.read_text())}
    assert {"blogdata_findings", "blogdata_alert_channel_failing"} <= names
    assert names == {family.name for family in text_string_to_metric_families(typed("metrics").stdout)}
    assert [one.name for one in tmp_path.glob("*.prom*")] == [file.name]
    with pytest.raises(ConfigurationError, match="existing folder"):
        CliRunner().invoke(app, ["metrics", "--out", str(tmp_path / "no" / "file")], catch_exceptions=False)
