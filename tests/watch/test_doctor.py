from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from blogdata.cli.main import app
from blogdata.operate.config import Settings
from blogdata.operate.spark_connect import SparkServer
from blogdata.watch import doctor


def test_doctor_finds_no_problem_in_healthy_deployments(settings: Settings, spark_server: SparkServer) -> None:
    assert [finding for finding in doctor.examine(settings) if not finding.ok] == []


def test_doctor_prints_json_and_fails_on_problems(settings: Settings, tmp_path: Path) -> None:
    environ = {"BLOGDATA_HOME": str(tmp_path), "BLOGDATA_JARS": str(tmp_path / "none")}
    result = CliRunner().invoke(app, ["doctor", "--json"], env=environ)
    assert result.exit_code == 1
    assert {row["name"]: row["ok"] for row in json.loads(result.stdout)}["jars"] is False
