"""Commands on datasets that an upgrade added and no run has computed yet, and invalid queries."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

import published
from blogdata.cli.main import app
from blogdata.cli.output import NOTHING_PUBLISHED
from blogdata.errors import PlatformError
from blogdata.ledger.events import EventLog
from blogdata.operate import config
from blogdata.table.lake import Lake

HOURS = ("2026-01-05T00", "2026-01-05T01")
Said = Callable[..., str]


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """An empty deployment, whose commands run in this process."""
    monkeypatch.setenv("BLOGDATA_HOME", str(tmp_path))
    return Lake(root=str(config.load().lake))


@pytest.fixture
def said() -> Said:
    """Return the output of a command, or the next step of its error."""

    def run(*arguments: str) -> str:
        done = CliRunner().invoke(app, arguments)
        return str(done.exception) if isinstance(done.exception, PlatformError) else done.output

    return run


@pytest.mark.parametrize(
    ("command", "remedy"),
    [
        (("ledger", "silver.ads"), "nothing can be computed of silver.ads yet: nothing has landed of landing.ads"),
        (("ledger", "silver.places"), "compute it: blogdata run --for silver.places"),
        (("sql", "SELECT * FROM silver.sessions_live"), "blogdata stream silver.sessions_live --once"),
        (("sql", "SELECT * FROM silver.sessions"), "compute it: blogdata run --for silver.sessions"),
    ],
)
def test_only_an_empty_deployment_gets_first_steps(
    lake: Lake, said: Said, command: tuple[str, ...], remedy: str
) -> None:
    assert NOTHING_PUBLISHED in said(*command)
    published.bronze(lake, {HOURS[0]: {HOURS[0]: 1}})
    EventLog(lake).publications("bronze.visits")
    assert remedy in said(*command)
    assert NOTHING_PUBLISHED not in said(*command)


def test_names_that_are_almost_right_are_suggested(lake: Lake, said: Said) -> None:
    published.bronze(lake, {HOURS[0]: {HOURS[0]: 1}})
    assert "did you mean gold.page_stats? Otherwise see all of them: " in said("run", "--for", "gold.page_stat")
    assert "did you mean bronze.visits? Otherwise tables: " in said("sql", "SELECT * FROM bronze.visit")
    assert "did you mean" not in said("ledger", "nothing")


def test_a_plan_names_the_tables_that_a_run_loads_first(lake: Lake, said: Said, tmp_path: Path) -> None:
    # The server is not asked: a plan is answered while it is down.
    tables = '[tables]\nurl = "postgresql://nobody@127.0.0.1:1/blog"\ndevices = "shop.devices"\n'
    (tmp_path / "blogdata.toml").write_text(tables)
    assert said("plan").startswith("devices of [tables] are due: ")
    assert json.loads(said("plan", "--json")) == {"runs": [], "tables": ["devices"]}


def test_a_span_that_ends_before_it_begins_is_refused(lake: Lake, said: Said) -> None:
    assert "no hour is between 2026-01-07T00 and" in said("run", "--from", "2026-01-07", "--to", "2026-01-05")


def test_a_reading_command_in_a_wrong_folder_begins_nothing(
    said: Said, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BLOGDATA_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    assert f"where: {tmp_path / 'var'}, as BLOGDATA_HOME is not set" in said("ledger")
    assert list(tmp_path.iterdir()) == []
