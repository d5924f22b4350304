"""Commands of the tutorial and the README run in page order and print the output shown."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Callable, Sequence
from itertools import groupby

import pytest

from docs.pages import ROOT, Command, followed
from lineage.command_line import Said
from lineage.conftest import Deploy, deploy
from lineage.deployment import Deployment
from lineage.origins import three_hours

__all__ = ("deploy",)
COMMANDS, README = followed("docs/tutorial.md"), followed("README.md")
HOME = "var/tutorial"
"""The deployment of the page's reader, below the project."""
CUT = "..."
"""A line of shown output that stands for any lines that are left out."""
ANYTHING = "…"
"""What stands in a shown line for what differs from run to run, such as durations and ids."""


@pytest.fixture
def follow(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., None]:
    """Types the commands of a page in order, with a deployment as home; each prints what the page shows."""
    said = Said(monkeypatch, capsys)

    def run(deployment: Deployment, commands: Sequence[Command], alike: Callable[[str], str] = str) -> None:
        home = str(deployment.settings.home)
        monkeypatch.setenv("BLOGDATA_HOME", home)
        monkeypatch.setenv("BLOGDATA_JARS", str(deployment.settings.jars))
        for command in commands:
            if command.not_run is None:
                printed = types(said, command.script).replace(home, HOME)
                missing = differing(alike(command.shown or ""), alike(printed))
                assert missing is None, f"{command.script}\nnot printed:\n{missing}\n\nprinted:\n{printed}"

    return run


def types(said: Said, script: str) -> str:
    """Run a block of a page, our commands in this process and the rest by a shell; return its output."""
    printed = ""
    for ours, lines in groupby(script.splitlines(keepends=True), lambda line: line.startswith("blogdata ")):
        if not ours:
            printed += subprocess.check_output(["sh", "-e", "-c", "".join(lines)], cwd=ROOT, text=True)
            continue
        for line in lines:
            code, out, err = said(*shlex.split(os.path.expandvars(line), comments=True)[1:])
            assert code == 0, f"{line}{out}{err}"
            printed += out
    return printed


def test_the_day_of_the_tutorial_has_the_figures_of_the_page(deploy: Deploy, follow: Callable[..., None]) -> None:
    """The rest of the page follows from this day, and `make laws` types all of it."""
    follow(deploy("landed"), COMMANDS[:2])


@pytest.mark.campaign
def test_each_command_of_the_tutorial_prints_what_the_page_shows(deploy: Deploy, follow: Callable[..., None]) -> None:
    follow(deploy("tutorial"), COMMANDS)


def test_each_command_of_the_readme_prints_what_it_shows(deploy: Deploy, follow: Callable[..., None]) -> None:
    """In a small deployment that is published already: figures and pages differ, words and columns do not."""
    deployment = deploy.published("readme", three_hours)
    simulated = deployment.landing / "_truth" / "spec.json"
    simulated.parent.mkdir()
    simulated.touch()
    run = [command.script.split()[:2] for command in README if command.not_run is None]
    assert run == [["make", "run"], ["blogdata", "sql"]]
    follow(deployment, README, in_small)


def in_small(output: str) -> str:
    """Remove figures, page names and what filters took out of a log from an output: they depend on the deployment."""
    return re.sub(r", # filtered\.\w+", "", re.sub(r"\d[\d,]*", "#", re.sub(r"(?<=\s)/\S*", "/", output)))


def test_a_command_that_is_not_run_says_why() -> None:
    reasons = [command.not_run for command in COMMANDS if command.not_run is not None]
    assert all(reasons)
    assert all(command.not_run != "" for command in README)
    # Most blocks are run; not run are the setup, a run of everything, the kill, the user interface and the cleanup.
    assert (len(reasons), len(COMMANDS) - len(reasons)) == (5, 10)


def differing(shown: str, printed: str) -> str | None:
    """Return the first shown lines that are not printed in order; None if all are."""
    lines = normal(printed)
    position = 0
    for part in re.split(rf"^{re.escape(CUT)}$", "\n".join(normal(shown)), flags=re.MULTILINE):
        wanted = [line for line in part.split("\n") if line]
        starts = range(position, len(lines) - len(wanted) + 1)
        found = next((start for start in starts if all(map(agree, wanted, lines[start:]))), None)
        if found is None:
            return "\n".join(wanted)
        position = found + len(wanted)
    return None


def agree(shown: str, printed: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, shown.split(ANYTHING))), printed) is not None


def normal(output: str) -> list[str]:
    """Return the lines with spaces collapsed, without empty lines."""
    return [" ".join(line.split()) for line in output.splitlines() if line.strip()]
