"""`blogdata land` says what it did, refuses what it cannot do, and never writes over anything."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from blogdata.land_commands import app
from patterns.core.errors import ConfigurationError
from patterns.ingestion.whole_files import SourceMissing
from simulator.landing import LandingOccupied


def simulate(landing: Path, *more: str) -> tuple[str, BaseException | None]:
    command = [
        "simulate",
        "--days",
        "1",
        "--visits-per-day",
        "200",
        "--seed",
        "3",
        "--landing",
        str(landing),
        *more,
    ]
    result = CliRunner().invoke(app, command)
    return result.stdout, result.exception


def test_simulate_prints_the_truth_as_json_and_a_second_run_says_nothing_was_changed(tmp_path: Path) -> None:
    first, error = simulate(tmp_path, "--json")
    assert error is None
    figures = json.loads(first)
    assert figures["lines"] == figures["valid"] + figures["dead"]
    assert figures["valid"] == figures["unique"] + figures["duplicates"]
    assert not figures["already_there"]
    assert json.loads(simulate(tmp_path, "--json")[0])["already_there"]
    assert "nothing was changed" in simulate(tmp_path)[0]


def test_simulate_takes_rates_a_start_and_compression(tmp_path: Path) -> None:
    (tmp_path / "faults.toml").write_text("duplicate = 1.0\n")
    landing = tmp_path / "landing"
    said, error = simulate(
        landing, "--faults", str(tmp_path / "faults.toml"), "--start", "2026-02-28", "--gzip", "--json"
    )
    assert error is None
    assert json.loads(said)["duplicates"] == 200
    assert list(landing.glob("visits/date=2026-02-28/hour=12/visits-00000.json.gz"))


def test_simulate_refuses_other_options_a_wrong_day_and_a_wrong_faults_file(tmp_path: Path) -> None:
    simulate(tmp_path)
    assert isinstance(simulate(tmp_path, "--gzip")[1], LandingOccupied)
    assert isinstance(simulate(tmp_path / "x", "--start", "28.02.2026")[1], ConfigurationError)
    assert isinstance(simulate(tmp_path / "x", "--faults", str(tmp_path / "absent"))[1], ConfigurationError)
    assert not (tmp_path / "x").exists()


def test_logs_are_landed_once_each_and_a_missing_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(b"one\n")
    (tmp_path / "b.log").write_bytes(b"two\n")
    files = [str(tmp_path / "a.log"), str(tmp_path / "b.log")]
    landing = ["--landing", str(tmp_path / "landing")]
    said = CliRunner().invoke(app, ["logs", *files, *landing, "--json"])
    assert [row["outcome"] for row in json.loads(said.stdout)] == ["new", "new"]
    assert (tmp_path / "landing" / "access_logs" / "b.log").read_bytes() == b"two\n"
    assert "nothing was changed" in CliRunner().invoke(app, ["logs", files[0], *landing]).stdout
    refused = CliRunner().invoke(app, ["logs", str(tmp_path / "absent.log"), *landing])
    assert isinstance(refused.exception, SourceMissing)
    assert refused.exit_code != 0


@pytest.mark.parametrize("command", ["simulate", "logs"])
def test_every_command_has_help(command: str) -> None:
    assert CliRunner().invoke(app, [command, "--help"]).exit_code == 0
