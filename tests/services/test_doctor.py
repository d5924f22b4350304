from __future__ import annotations

import json
import socket
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from blogdata.cli import services_commands
from blogdata.errors import ConfigurationError
from blogdata.services import doctor, processes
from blogdata.services.config import Settings
from blogdata.services.spark_connect import SparkServer
from services.conftest import small


def findings(settings: Settings) -> dict[str, doctor.Diagnosis]:
    return {finding.name: finding for finding in doctor.examine(settings)}


def test_doctor_finds_no_problem_in_healthy_deployments(settings: Settings, spark_server: SparkServer) -> None:
    assert [finding for finding in doctor.examine(settings) if not finding.ok] == []


def test_every_problem_has_a_next_step(settings: Settings, tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        spark = replace(settings.spark, port=other.getsockname()[1])
        own_postgres = replace(settings.postgres, port=spark.port)
        broken = replace(
            settings,
            home=tmp_path,
            jars=tmp_path,
            java="system",
            java_home=None,
            search_path="",
            spark=spark,
            postgres=own_postgres,
        )
        problems = {name: found for name, found in findings(broken).items() if not found.ok}
        remote = replace(spark, mode="remote", remote=f"sc://127.0.0.1:{processes.free_port()}", writes="checkpoint")
        without = findings(replace(broken, spark=remote))
    assert set(problems) == {"java", "jars", "engine", "port", "postgres port"}
    assert without["engine"].ok, "an audit in checkpoints needs no engine"
    assert all(finding.next_step for finding in problems.values())
    assert str(spark.port) in problems["port"].detail
    assert "BLOGDATA_POSTGRES_PORT" in problems["postgres port"].next_step


def test_a_silent_remote_server_is_a_problem(settings: Settings, tmp_path: Path) -> None:
    remote = f"sc://localhost:{processes.free_port()}"
    spark = replace(settings.spark, mode="remote", remote=remote)
    found = findings(replace(settings, home=tmp_path, spark=spark))["spark"]
    assert not found.ok
    assert "SPARK_REMOTE" in found.next_step


def test_doctor_prints_json_and_fails_on_problems(settings: Settings, tmp_path: Path) -> None:
    environ = {"BLOGDATA_HOME": str(tmp_path), "BLOGDATA_JARS": str(tmp_path / "none")}
    result = CliRunner().invoke(services_commands.app, ["doctor", "--json"], env=environ)
    assert result.exit_code == 1
    assert {row["name"]: row["ok"] for row in json.loads(result.stdout)}["jars"] is False


@pytest.mark.campaign
def test_services_go_up_and_down_by_command(settings: Settings, tmp_path: Path) -> None:
    small(settings, tmp_path)
    environ = {
        "BLOGDATA_HOME": str(tmp_path),
        "BLOGDATA_JARS": str(settings.jars),
        "BLOGDATA_SPARK_HEAP": "600m",
    }

    def state(*arguments: str) -> str:
        result = CliRunner().invoke(services_commands.app, [*arguments, "spark", "--json"], env=environ)
        assert result.exit_code == 0, result.output
        return str(json.loads(result.stdout)[0]["state"])

    try:
        assert state("status") == "stopped"
        assert state("up") == "running"
        assert state("status") == "running"
    finally:
        assert state("down") == "stopped"


def test_an_unknown_service_is_refused_listing_known_ones(tmp_path: Path) -> None:
    environ = {"BLOGDATA_HOME": str(tmp_path)}
    result = CliRunner().invoke(services_commands.app, ["up", "sparc"], env=environ)
    assert isinstance(result.exception, ConfigurationError)
    assert "spark" in result.exception.next_step


@pytest.mark.parametrize("command", ["up", "down", "status", "doctor"])
def test_every_command_has_help(command: str) -> None:
    assert CliRunner().invoke(services_commands.app, [command, "--help"]).exit_code == 0
