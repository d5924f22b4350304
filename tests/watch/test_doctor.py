"""The doctor finds nothing in a healthy deployment; what it finds it names with a remedy, and without secrets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from blogdata import files
from blogdata.cli.main import app
from blogdata.operate import config
from blogdata.operate.config import Settings
from blogdata.operate.spark_connect import SparkServer
from blogdata.watch import doctor
from blogdata.watch.doctor import Diagnosis

CANARY = "a-canary-of-a-password"


def loaded(home: Path) -> Settings:
    return config.load({"BLOGDATA_HOME": str(home), "HOME": str(home)})


def with_tables(home: Path, tables: str) -> Settings:
    (home / "blogdata.toml").write_text(f"[tables]\n{tables}")
    return loaded(home)


def examined(settings: Settings) -> dict[str, Diagnosis]:
    return {found.name: found for found in doctor.examine(settings)}


def test_doctor_finds_no_problem_in_healthy_deployments(settings: Settings, spark_server: SparkServer) -> None:
    assert [finding for finding in doctor.examine(settings) if not finding.ok] == []


def test_doctor_prints_json_and_fails_on_problems(settings: Settings, tmp_path: Path) -> None:
    environ = {"BLOGDATA_HOME": str(tmp_path), "BLOGDATA_JARS": str(tmp_path / "none")}
    result = CliRunner().invoke(app, ["doctor", "--json"], env=environ)
    assert result.exit_code == 1
    assert {row["name"]: row["ok"] for row in json.loads(result.stdout)}["jars"] is False


def test_a_home_is_closed(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old").chmod(0o755)
    for home in (tmp_path / "old", tmp_path / "new"):
        assert loaded(home).home.stat().st_mode & 0o777 == 0o700
    assert examined(loaded(tmp_path / "old"))["privacy"].ok


@pytest.mark.parametrize("name", ["secrets/shop", "blogdata.toml", "services/spark/server.conf"])
def test_an_open_secret_is_a_problem(tmp_path: Path, name: str) -> None:
    settings = loaded(tmp_path / "home")
    file = settings.home / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()
    file.chmod(0o644)
    # In a closed home only the folder of secrets is checked: secrets may be copied elsewhere.
    assert examined(settings)["privacy"].ok == (not name.startswith("secrets/"))
    settings.home.chmod(0o750)
    found = examined(settings)["privacy"]
    assert not found.ok
    assert str(file) in found.detail
    assert found.next_step.startswith(f"Run chmod 600 {file}")
    file.chmod(0o600)
    assert files.exposed_secrets(settings.home) == []


def test_doctor_tries_the_database_of_the_tables(tmp_path: Path, database: str) -> None:
    found = examined(with_tables(tmp_path, f'url = "{database}"\ndevices = "devices"\n'))["tables"]
    assert (found.ok, found.detail.partition(":")[0]) == (True, "their database answers")
    assert "tables" not in examined(with_tables(tmp_path, f'url = "{database}"\n'))


@pytest.mark.parametrize("stored", [False, True])
def test_doctor_names_the_password_of_the_tables_and_shows_none(tmp_path: Path, database: str, stored: bool) -> None:
    server = database.rpartition("@")[2]
    settings = with_tables(tmp_path, f'url = "postgresql://nobody@{server}"\nsecret = "blog-db"\ndevices = "devices"\n')
    file = tmp_path / "secrets" / "blog-db"
    if stored:
        file.parent.mkdir(mode=0o700)
        file.touch(mode=0o600)
        file.write_text(CANARY)
    problem = examined(settings)["tables" if stored else "secrets"]
    assert (problem.ok, str(file) in f"{problem.detail} {problem.next_step}") == (False, True)
    assert CANARY not in f"{problem.detail} {problem.next_step}"
