"""`blogdata report`: one page, or its figures, in a moment and without Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import published
from blogdata.cli import report_command
from blogdata.cli.main import app
from blogdata.cli.output import Outcome
from blogdata.operate import config
from page_view_rows import random_views, write


@pytest.fixture
def home(tmp_path: Path) -> Path:
    write(published.deployment(tmp_path).lake, random_views(50, seed=1))
    return tmp_path


def said(home: Path, *arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["report", *arguments], env={"BLOGDATA_HOME": str(home)})
    return done.exit_code, done.stdout


def test_the_page_goes_where_it_should(home: Path, tmp_path: Path) -> None:
    assert said(home) == (0, f"{home / 'report.html'}\n")
    elsewhere = tmp_path / "pages" / "today.html"
    assert said(home, "--out", str(elsewhere)) == (0, f"{elsewhere}\n")
    assert elsewhere.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_json_prints_the_figures_and_writes_no_page(home: Path) -> None:
    code, out = said(home, "--json", "--days", "2")
    assert code == 0
    assert not (home / "report.html").exists()
    assert json.loads(out)["blog"]["since"] >= "2026-01-06"


def test_a_report_that_fails_is_a_warning(home: Path) -> None:
    settings = config.load(overrides={"BLOGDATA_HOME": str(home)})
    assert report_command.made_after_a_run(settings, Outcome(runs=1)) == []
    assert (home / "report.html").is_file()
    (home / "report.html").unlink()
    (home / "report.html").mkdir()
    (warning,) = report_command.made_after_a_run(settings, Outcome(runs=1))
    assert warning.startswith("the report was not made: ")
