"""Commands of the tutorial and the README run in page order and print the output shown."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from docs.pages import ROOT, Command, followed
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


@dataclass(frozen=True, kw_only=True)
class Reader:
    """A person who types the commands of pages, in the project's folder with a separate home."""

    home: Path
    environ: Mapping[str, str]

    def types(self, command: Command) -> str:
        """Run a block of a page; return its output."""
        ran = subprocess.run(
            ["sh", "-e", "-c", command.script], cwd=ROOT, env=self.environ, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, f"{command.script}{ran.stdout}{ran.stderr}"
        return ran.stdout.replace(str(self.home), HOME)


def reader_of(deployment: Deployment) -> Reader:
    own = {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "BLOGDATA_HOME": str(deployment.settings.home),
        "BLOGDATA_JARS": str(deployment.settings.jars),
    }
    others = {name: value for name, value in os.environ.items() if not name.startswith("BLOGDATA_")}
    return Reader(home=deployment.settings.home, environ={**others, **own})


def test_each_command_of_the_tutorial_prints_what_the_page_shows(deploy: Deploy) -> None:
    reader = reader_of(deploy("tutorial"))
    for command in COMMANDS:
        if command.not_run is None:
            printed = reader.types(command)
            missing = differing(command.shown or "", printed)
            assert missing is None, f"{command.script}\nnot printed:\n{missing}\n\nprinted:\n{printed}"


def test_each_command_of_the_readme_prints_what_it_shows(deploy: Deploy) -> None:
    """In a small deployment that is published already: figures and pages differ, words and columns do not."""
    deployment = deploy.published("readme", three_hours)
    simulated = deployment.landing / "_truth" / "spec.json"
    simulated.parent.mkdir()
    simulated.touch()
    reader = reader_of(deployment)
    run = [command for command in README if command.not_run is None]
    assert [command.script.split()[:2] for command in run] == [["make", "run"], ["blogdata", "sql"]]
    for command in run:
        printed = reader.types(command)
        missing = differing(in_small(command.shown or ""), in_small(printed))
        assert missing is None, f"{command.script}\nnot printed:\n{missing}\n\nprinted:\n{printed}"


def in_small(output: str) -> str:
    """Remove figures, page names and what filters took out of a log from an output: they depend on the deployment."""
    return re.sub(r", # filtered\.\w+", "", re.sub(r"\d[\d,]*", "#", re.sub(r"(?<=\s)/\S*", "/", output)))


def test_a_command_that_is_not_run_says_why() -> None:
    reasons = [command.not_run for command in COMMANDS if command.not_run is not None]
    assert all(command.not_run != "" for command in README)
    assert all(len(reason) > len("not run") for reason in reasons)
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
    """Tell whether a printed line matches a shown one."""
    return re.fullmatch(".*".join(map(re.escape, shown.split(ANYTHING))), printed) is not None


def normal(output: str) -> list[str]:
    """Return the lines with spaces collapsed, without empty lines."""
    return [" ".join(line.split()) for line in output.splitlines() if line.strip()]
