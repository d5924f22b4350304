"""Hours are added to a simulation: landed files keep their bytes, and the truth covers all hours."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest
from typer.testing import CliRunner

from blogdata.cli.land_commands import app
from blogdata.errors import ConfigurationError
from blogdata.simulator.landing_zone import add, simulate
from blogdata.simulator.spec import SimulationSpec
from simulated import EVERY_FAULT, Killed, assert_truth_equals_the_recount, contents

NOW = datetime(2026, 2, 1, tzinfo=timezone.utc)
SPEC = SimulationSpec(days=1, visits_per_day=600, seed=11, faults=replace(EVERY_FAULT, huge_line=0.0), ads=True)


def landed(landing: Path) -> dict[str, str]:
    return {name: digest for name, digest in contents(landing).items() if not name.startswith("_")}


def dying_at(hour: int) -> object:
    def die(done: int, total: int) -> None:
        if done == hour:
            raise Killed

    return die


@pytest.fixture(scope="module")
def at_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A day to which 33 hours were added by one command."""
    landing = tmp_path_factory.mktemp("at_once")
    simulate(SPEC, landing)
    add(33, landing, now=NOW)
    return landing


def test_hours_that_have_landed_keep_their_bytes(tmp_path: Path, at_once: Path) -> None:
    simulate(SPEC, tmp_path)
    for hours in (1, 32):
        before = landed(tmp_path)
        truth = add(hours, tmp_path, now=NOW)
        assert before.items() < landed(tmp_path).items()
        assert_truth_equals_the_recount(truth, tmp_path)
    # Adding them with several commands gives the same hours, and the same counts.
    added, once = contents(tmp_path), contents(at_once)
    assert added.keys() == once.keys()
    assert {name for name, digest in once.items() if added[name] != digest} == {"_truth/spec.json"}


def test_a_killed_command_is_repeated_and_adds_its_hours_once(tmp_path: Path, at_once: Path) -> None:
    simulate(SPEC, tmp_path)
    with pytest.raises(Killed):
        add(33, tmp_path, dying_at(40), now=NOW)  # type: ignore[arg-type]
    assert landed(tmp_path) != landed(at_once)
    add(33, tmp_path, now=NOW)
    assert contents(tmp_path) == contents(at_once)
    assert len(add(1, tmp_path, now=NOW).hours) == 58, "a command that has ended is not repeated: it adds"


def command(landing: Path, *options: str) -> tuple[str, BaseException | None]:
    places = {"BLOGDATA_HOME": str(landing.parent / "home"), "BLOGDATA_LANDING": str(landing)}
    result = CliRunner().invoke(app, ["simulate", *options], env=places)
    return result.stdout, result.exception


def test_the_command_adds_days_and_hours(tmp_path: Path) -> None:
    assert isinstance(command(tmp_path, "--hours", "1")[1], ConfigurationError), "there is nothing to add to"
    size = ("--days", "1", "--visits-per-day", "200", "--seed", "3")
    assert command(tmp_path, *size, "--begin", "2026-01-05")[1] is None
    assert "added: 2026-01-06T00\n" in command(tmp_path, "--hours", "1")[0]
    assert "added: 2026-01-06T01 … 2026-01-07T00\n" in command(tmp_path, "--hours", "24")[0]
    assert json.loads(command(tmp_path, "--hours", "2", "--json")[0])["added"] == ["2026-01-07T01", "2026-01-07T02"]
    assert "nothing was changed" in command(tmp_path, *size)[0]
    for wrong in (("--hours", "1", "--begin", "2026-01-05"), ("--seed", "4"), ()):
        assert isinstance(command(tmp_path, *wrong)[1], ConfigurationError)
