"""After an upgrade of a crawler list the plan offers exactly the hours whose classification changes."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from assets.transforms import crawlers
from blogdata.cli.main import app
from lineage.conftest import Deploy
from lineage.deployment import Deployment, event

BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:120.0) Gecko/20100101 Firefox/120.0"
NEWCOMER, KNOWN = "Newcomer/1.0", "Mozilla/5.0 (compatible; Googlebot/2.1)"
CLIENTS = [("192.0.2.1", BROWSER), ("192.0.2.2", NEWCOMER), ("192.0.2.3", KNOWN), ("192.0.2.4", BROWSER)]
# The clients that view a page in each hour; an hour without a log has visit events.
HOURS = {
    "2026-01-05T10": [0, 1],
    "2026-01-05T11": [0, 2],
    "2026-01-05T12": [],
    "2026-01-05T13": [3, 2],
    "2026-01-05T14": [1],
}


def fill(deployment: Deployment, *datasets: str) -> None:
    for hour, viewers in HOURS.items():
        time = f"05/Jan/2026:{hour[11:]}:05:00 +0000"
        views = [f'{CLIENTS[at][0]} - - [{time}] "GET /a HTTP/1.1" 200 1 "-" "{CLIENTS[at][1]}"' for at in viewers]
        if views:
            deployment.land(hour, [view.encode() for view in views], name="access.log")
        else:
            deployment.land(hour, [event("12:05", "/a")])
    assert deployment.run(for_=datasets).problems == []


def offered(deployment: Deployment) -> list[str]:
    asked = CliRunner().invoke(app, ["plan", "--json"], env={"BLOGDATA_HOME": str(deployment.settings.home)})
    assert asked.exit_code == 0, asked.output
    return json.loads(asked.stdout).get("offered", {}).get("bronze.visits", [])  # type: ignore[no-any-return]


def upgrade(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a newer list of crawlers, with the newcomer in it."""
    newer = replace(crawlers.installed(), tagged=(*crawlers.installed().tagged, ("^Newcomer", ("ai-crawler",))))
    versions = {**crawlers.versions(), "crawler-user-agents": "1.67.1"}
    monkeypatch.setattr(crawlers, "installed", lambda: newer)
    monkeypatch.setattr(crawlers, "versions", lambda: versions)


def test_an_upgrade_of_a_list_offers_the_hours_it_changes_until_they_ran_again(
    deploy: Deploy, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment = deploy("upgraded")
    fill(deployment, "bronze.visits")
    assert offered(deployment) == []
    upgrade(monkeypatch)
    changed = ["2026-01-05T10", "2026-01-05T14"]
    assert offered(deployment) == changed
    assert deployment.run(hours=(changed[0], changed[-1]), select=["bronze.visits"]).problems == []
    assert offered(deployment) == []
    assert set(deployment.rows("bronze.visits", "crawler")) == {None, "search", "ai_crawler"}
