"""What commands that load nothing say of the tables that are due."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from blogdata.cli.main import app
from blogdata.operate import config
from blogdata.watch import doctor
from blogdata.watch.doctor import Diagnosis

CANARY = "a-canary-of-a-password"


def home(tmp_path: Path, settings: str) -> dict[str, str]:
    (tmp_path / "blogdata.toml").write_text(f"[tables]\n{settings}")
    return {"HOME": str(tmp_path), "BLOGDATA_HOME": str(tmp_path)}


def examined(environment: dict[str, str]) -> dict[str, Diagnosis]:
    return {found.name: found for found in doctor.examine(config.load(environment))}


def test_a_plan_names_the_tables_that_a_run_loads_first(tmp_path: Path) -> None:
    # The server is not asked: a plan is answered while it is down.
    environment = home(tmp_path, 'url = "postgresql://nobody@127.0.0.1:1/blog"\ndevices = "shop.devices"\n')
    said = CliRunner().invoke(app, ["plan"], env=environment)
    assert (said.exit_code, said.stdout.startswith("devices of [tables] are due: ")) == (0, True)
    said = CliRunner().invoke(app, ["plan", "--json"], env=environment)
    assert json.loads(said.stdout) == {"runs": [], "tables": ["devices"]}


def test_doctor_tries_the_database_of_the_tables(tmp_path: Path, database: str) -> None:
    found = examined(home(tmp_path, f'url = "{database}"\ndevices = "devices"\n'))["tables"]
    assert (found.ok, found.detail.partition(":")[0]) == (True, "their database answers")
    assert "tables" not in examined(home(tmp_path, f'url = "{database}"\n'))


@pytest.mark.parametrize("stored", [False, True])
def test_doctor_names_the_password_of_the_tables_and_shows_none(tmp_path: Path, database: str, stored: bool) -> None:
    server = database.rpartition("@")[2]
    environment = home(tmp_path, f'url = "postgresql://nobody@{server}"\nsecret = "blog-db"\ndevices = "devices"\n')
    file = tmp_path / "secrets" / "blog-db"
    if stored:
        file.parent.mkdir(mode=0o700)
        file.touch(mode=0o600)
        file.write_text(CANARY)
    problem = examined(environment)["tables" if stored else "secrets"]
    assert (problem.ok, str(file) in f"{problem.detail} {problem.next_step}") == (False, True)
    assert CANARY not in f"{problem.detail} {problem.next_step}"
