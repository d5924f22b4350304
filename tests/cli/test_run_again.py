"""`blogdata run` with one end of a span recomputes many partitions only if a person agrees."""

from __future__ import annotations

import os
import pty
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

import published
from blogdata.cli.main import app
from blogdata.errors import ConfigurationError
from blogdata.lake.lake import Lake
from blogdata.publish.partitions import Grain, between
from blogdata.services import config
from docs.pages import parse

HOURS = between("2026-01-05T00", "2026-01-09T23", Grain.HOUR)
PASSED = "--for"
"""What is wrong with a run of a span for some datasets: the run itself says so, after the question."""
Refused = Callable[..., ConfigurationError]


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """A deployment with five published days of visits, ten rows an hour."""
    monkeypatch.setenv("BLOGDATA_HOME", str(tmp_path))
    lake = Lake(root=str(config.load().lake))
    published.bronze(lake, {hour: {hour: 10} for hour in HOURS})
    return lake


@pytest.fixture
def refused(lake: Lake) -> Refused:
    """Return the error of a run that ends before it computes anything."""

    def run(*options: str) -> ConfigurationError:
        error = CliRunner().invoke(app, ("run", *options, PASSED, "gold.page_stats")).exception
        assert isinstance(error, ConfigurationError)
        return error

    return run


def test_without_a_terminal_much_is_not_computed_again(refused: Refused) -> None:
    error = refused("--from", "2026-01-05")
    assert error.what == "120 published partitions (1,200 rows) would be computed again: the span has one end only"
    assert (error.where, error.exit_code) == ("--from 2026-01-05", 2)
    # Equal to the number of partitions in the span.
    assert refused("--from", "2026-01-05T19").what.startswith("101 published partitions (1,010 rows)")
    assert refused("--to", "2026-01-09T22").what.startswith("118 published partitions (1,180 rows)")


@pytest.mark.parametrize(
    "options",
    [
        ("--from", "2026-01-05"),
        ("--to", "2026-01-10"),
        ("--from", "2026-01-05", "--select", "bronze.visits,silver.visits", "--accept", "dead_letters"),
    ],
)
def test_the_remedy_is_a_command_that_can_be_typed(refused: Refused, options: tuple[str, ...]) -> None:
    both, everything = str(refused(*options).next_step).split("; or run all of it: ")
    assert both == "give both ends, --from and --to"
    assert everything == f"blogdata {shlex.join(['run', *options])} --yes"
    parse(shlex.split(everything)[1:])


@pytest.mark.usefixtures("lake")
def test_on_a_terminal_a_person_is_asked() -> None:
    own, theirs = pty.openpty()
    command = [str(Path(sys.executable).with_name("blogdata")), "run", "--from", "2026-01-05"]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        said = b""
        while b"[y/N]" not in said:
            said += os.read(own, 1024)
        assert "120 published partitions (1,200 rows) would be computed again; run it?" in said.decode()
        os.write(own, b"n\n")
        assert process.wait(timeout=60) == 1
    os.close(own)
