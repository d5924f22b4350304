"""Findings at a terminal: `blogdata run` sends them, `blogdata status` shows, and `blogdata metrics` counts them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from alert_servers import Posted, web_server
from blogdata.cli.main import app
from published import deployment, land


@pytest.fixture
def hook() -> Iterator[Posted]:
    """A web server that receives messages."""
    with web_server() as posted:
        yield posted


@pytest.fixture
def home(tmp_path: Path, hook: Posted, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A deployment with an overdue hour, and a channel."""
    home = tmp_path / "home"
    land(deployment(home), "visits", "2026-01-05T03", {"a.json": "{}\n"}, flag=False)
    (home / "blogdata.toml").write_text(f'[[alerts]]\nname = "hook"\naddress = "{hook.channel}"\n')
    monkeypatch.setenv("BLOGDATA_HOME", str(home))
    return home


def typed(*arguments: str) -> Any:
    return CliRunner().invoke(app, arguments)


def test_a_run_tells_what_status_shows(home: Path, hook: Posted) -> None:
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
