"""`blogdata feed` shows the partner's state, sends due events, and settles requests that need a decision."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest
from typer.testing import CliRunner

from blogdata.cli.main import app
from blogdata.errors import ConfigurationError
from blogdata.orchestration import partner as of_deployment
from blogdata.orchestration.alerting import observed
from blogdata.patterns.data_value.ordered_delivery import Refused, Undelivered
from blogdata.planning.findings import unsent
from blogdata.publish.writes import Feed
from blogdata.services import config
from blogdata.services.config import Settings
from blogdata.simulator.partner import PartnerFaults
from data_value.partner_feed import PARTITION, by_key, expected, partner, received, row, rows, token
from quality.contracts import GRAPH, SERVED
from quality.contracts.serving import PARTNER_FEED

assert isinstance(PARTNER_FEED.write, Feed)
FEED = PARTNER_FEED.write


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A deployment with a partner that requires a key."""
    monkeypatch.setenv("BLOGDATA_HOME", str(tmp_path))
    secret = tmp_path / "secrets" / "partner"
    secret.parent.mkdir()
    secret.write_text("the key\n")
    secret.chmod(0o600)
    (tmp_path / "blogdata.toml").write_text(
        '[partner]\nsecret = "partner"\ntimeout = 0.2\npatience = 0.0\nwait = "0s"\n'
    )
    return config.load()


def call(*words: str) -> tuple[int, str]:
    """Run a command; return its exit code and its output with whitespace collapsed."""
    done = CliRunner().invoke(app, ["feed", *words])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, re.sub(r"\s+", " ", done.output)


def test_due_events_are_sent(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    taken, file = rows(4, 2), settings.home / "received.jsonl"
    assert "no partner is configured" in call()[1]
    of_deployment.outbox(settings).take(PARTITION, "t:1", taken, rows_in=len(taken) + 1, private=1)
    with partner(file, key="the key") as server:
        monkeypatch.setenv("BLOGDATA_PARTNER", server.url)
        assert call("--send") == (0, f"the partner took {len(taken)} records " + call()[1])
    told = {token(settings.home, "key", key): events for key, events in expected(taken).items()}
    assert by_key(received(file)) == told
    assert f"{len(taken) + 1} 1 {len(taken)} 0 0 adds up" in call()[1]
    (line,) = json.loads(CliRunner().invoke(app, ["feed", "--json"]).output)["partitions"]
    assert (line["delivered"], line["private"], line["balanced"]) == (len(taken), 1, True)
    ledger = json.loads(CliRunner().invoke(app, ["ledger", "serving.partner_feed", "--json"]).output)
    assert [(one["rows_in"], one["rows_out"], one["reasons"], one["balanced"]) for one in ledger] == [
        (len(taken) + 1, len(taken), {"private": 1}, True)
    ]


@pytest.mark.parametrize("settled", ["--taken", "--not-taken"])
def test_a_person_settles_a_request(settings: Settings, monkeypatch: pytest.MonkeyPatch, settled: str) -> None:
    box, file = of_deployment.outbox(settings), settings.home / "received.jsonl"
    box.take(PARTITION, "t:1", [row("a", 1), row("b", 2)], rows_in=2, private=0)
    with partner(file, PartnerFaults(unavailable=1.0), key="the key") as server:
        monkeypatch.setenv("BLOGDATA_PARTNER", server.url)
        with box.alone(), pytest.raises(Undelivered):
            of_deployment.send(config.load(), box, FEED)
        # A visitor opts out of sharing: the open request must not be repeated.
        box.take(PARTITION, "t:2", [row("a", 1)], rows_in=2, private=1)
        code, said = call()
        assert (code, "1 of its events may not be sent any more" in said) == (1, True)
        found = [one.what for one in unsent(observed(config.load(), GRAPH, (), [*SERVED.values()]))]
        assert "not answered, and may not be repeated" in found[0]
        (one,) = box.open()
        refused = CliRunner().invoke(app, ["feed", settled, ""])
        assert isinstance(refused.exception, ConfigurationError)
        assert box.open() == [one], "an empty name does not select the only request"
        server.faults = PartnerFaults()
        assert call(settled, one.request.id[:6])[0] == 0
        call("--send")
    assert by_key(received(file)) == ({} if settled == "--taken" else {token(settings.home, "key", "a"): [(1, 1)]})
    (line,) = box.lines()
    assert (line.states, line.withdrawn) == ({"delivered": 1}, 1 if settled == "--taken" else 0)


def test_a_refused_key_is_named(settings: Settings) -> None:
    box, file = of_deployment.outbox(settings), settings.home / "received.jsonl"
    box.take(PARTITION, "t:1", [row("a", 1)], rows_in=1, private=0)
    with partner(file, key="another key") as server:
        mine = replace(settings, partner=replace(settings.partner, url=server.url))
        with box.alone(), pytest.raises(Refused, match="401"):
            of_deployment.send(mine, box, FEED)
    assert (box.open(), len(box.due(before="9999")), received(file)) == ([], 1, [])


def test_hours_wait_for_late_events(settings: Settings) -> None:
    now = datetime(2026, 1, 5, 12, 30, tzinfo=timezone.utc)
    an_hour = replace(settings, partner=replace(settings.partner, wait=3600.0))
    assert of_deployment.released(settings, now) == "2026-01-05T12"
    assert of_deployment.released(an_hour, now) == "2026-01-05T11"


@pytest.mark.parametrize("text", ['url = "ftp://partner"', 'mode = "all"', 'wait = "soon"'])
def test_unusable_settings_of_the_partner_are_named(settings: Settings, text: str) -> None:
    (settings.home / "blogdata.toml").write_text(f"[partner]\n{text}\n")
    with pytest.raises(ConfigurationError) as error:
        config.load()
    assert "partner" in error.value.where
