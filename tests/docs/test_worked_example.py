"""The worked example of two how-to pages works: its files are added to a copy of the project."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from filecmp import cmp
from fnmatch import fnmatch
from pathlib import Path

import pytest

from blogdata.operate.spark_connect import SparkServer
from blogdata.simulator.spec import SimulationSpec
from docs.pages import ROOT, files, text
from lineage.deployment import Deployment
from tools import pattern_card

DAY = "2026-01-05"
PAGE, OF_PATTERN = "docs/how-to/add-a-dataset.md", "docs/how-to/add-a-pattern.md"
# The second page goes on where the first one ends: its asset takes the place of that of the first.
FILES = {**files(PAGE), **files(OF_PATTERN)}
USED = 'patterns=("Tail Folder", *PATTERNS),'
PATTERN = "platform/blogdata/patterns/data_value/tail_folder.py"
TESTS = ("tests/patterns/test_tail_folder.py", "tests/lineage/test_browser_stats.py")
OF_ALL = (
    "tests/docs/test_pattern_index.py",
    "--deselect=tests/docs/test_pattern_index.py::test_the_generated_pages_are_current",
    "tests/unit/test_plan_of_a_replay.py::test_replaying_an_arrival_hour_reaches_its_event_hours",
    "tests/runs/test_replay.py",
    "tests/sensors/test_schedules.py::test_a_schedule_requests_its_datasets_in_one_run",
)
"""Tests of what holds of every dataset, or pattern: they derive which there are."""
CONTRACT = "quality/contracts/browser_stats.py"
ASSET = "assets/gold/browser_stats.py"
DATASET = "gold.browser_stats"
MYPY = ".mypy_cache"
COMMAND = "from blogdata.cli.main import main; main()"
LOOK = f"""
import json
from typer.testing import CliRunner
from blogdata.cli.main import app
from blogdata.operate.config import load
from blogdata.runs.names import asset_key
from definitions import build
from tools import docs
node = build(load()).resolve_asset_graph().get(asset_key("{DATASET}"))
planned, released = (CliRunner().invoke(app, words.split()) for words in ("plan", "schema release"))
docs.main()
names = [[key.path for key in node.parent_keys], [key.name for key in node.check_keys]]
print(json.dumps([*names, planned.stdout, released.exit_code]))
"""
"""In one process, which has loaded Dagster once."""


@dataclass(frozen=True, kw_only=True)
class Project:
    """A copy of the project, run in separate processes."""

    root: Path
    deployment: Deployment

    def python(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        settings, path = self.deployment.settings, os.pathsep.join([str(self.root), str(self.root / "platform")])
        own = {"BLOGDATA_HOME": str(settings.home), "BLOGDATA_JARS": str(settings.jars), "PYTHONPATH": path}
        command, env = [sys.executable, *arguments], {**os.environ, **own}
        return subprocess.run(command, cwd=self.root, env=env, capture_output=True, text=True, check=False)

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.python("-c", COMMAND, *arguments)


@pytest.fixture(scope="module")
def project(spark_server: SparkServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """The project with the page's files added, and a landed simulated day."""
    folder = tmp_path_factory.mktemp("example")
    root = folder / "project"
    without = shutil.ignore_patterns(".*", "var", "__pycache__", "node_modules")
    shutil.copytree(ROOT, root, ignore=without)
    for name, added in FILES.items():
        file = root / name
        assert not file.exists()
        file.write_text(added.replace("patterns=PATTERNS,", USED), encoding="utf-8")
    deployment = Deployment.create(folder / "home", spark_server.url)
    deployment.simulate(SimulationSpec(days=1, visits_per_day=600, seed=11))
    yield Project(root=root, deployment=deployment)
    deployment.close()


def test_the_pages_give_five_valid_files(tmp_path: Path) -> None:
    assert (set(files(PAGE)), set(FILES)) == ({CONTRACT, ASSET, TESTS[1]}, {PATTERN, CONTRACT, ASSET, *TESTS})
    assert "tail_folder" not in files(PAGE)[ASSET]
    assert f"`{USED}`" in text(OF_PATTERN)
    for added in (*FILES.values(), files(PAGE)[ASSET]):
        ast.parse(added)
    file = tmp_path / "tail_folder.py"
    file.write_text(FILES[PATTERN], encoding="utf-8")
    card = pattern_card.read(file)
    assert card is not None
    assert (card.name, card.chapter) == ("Tail Folder", 5)


@pytest.mark.campaign
def test_the_files_pass_what_every_change_has_to_pass(project: Project) -> None:
    # `make lint` already checks all other files.
    if (ROOT / MYPY).is_dir():
        shutil.copytree(ROOT / MYPY, project.root / MYPY)
    for asset in (files(PAGE)[ASSET], FILES[ASSET]):
        (project.root / ASSET).write_text(asset, encoding="utf-8")
        for tool in (("ruff", "check"), ("ruff", "format", "--check"), ("mypy",)):
            ran = project.python("-m", *tool, *FILES)
            assert ran.returncode == 0, ran.stdout + ran.stderr
    # An unreleased schema may still change; then it is released.
    assert f"to release ({DATASET})" in project.command("schema", "check").stdout
    assert f"released: {DATASET}" in project.command("schema", "release").stdout
    assert "0 break their readers, 0 not released yet" in project.command("schema", "check").stdout
    ran = project.python("-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "--no-header", *TESTS, *OF_ALL)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.campaign
def test_the_dataset_is_found_without_being_named(project: Project) -> None:
    looked = project.python("-c", LOOK)
    assert looked.returncode == 0, looked.stderr
    parents, checks, planned, code = json.loads(looked.stdout.splitlines()[-1])
    assert parents == [["silver", "visits_enriched"]]
    assert {"ledger", "waiting"} <= set(checks)
    assert (DATASET in planned, code) == (True, 0)
    rows = text(PAGE).partition("|---|---|")[2].partition("\n\n")[0].strip().splitlines()
    named = [pattern for row in rows for pattern in re.findall("`([^`]*)`", row.split(" | ")[0])]
    # Those of the pattern; the README says how many there are.
    changed = changes(project.root) - {PATTERN, TESTS[0], "README.md"}
    assert {name for name in changed if not any(fnmatch(name, pattern) for pattern in named)} == set()
    assert [pattern for pattern in named if not any(fnmatch(name, pattern) for name in changed)] == []
    page = project.root / "docs" / "patterns" / "tail_folder.md"
    assert f"Datasets: [`{DATASET}`]" in page.read_text(encoding="utf-8")


@pytest.mark.campaign
def test_the_dataset_is_computed_and_its_account_adds_up(project: Project) -> None:
    ran = project.command("run")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert f"{DATASET}" in ran.stdout
    ledger = project.command("ledger", DATASET)
    assert (ledger.returncode, DATASET in ledger.stdout) == (0, True), ledger.stdout + ledger.stderr
    rows = project.deployment.rows("silver.visits_enriched", "browser", "event_hour")
    browsers = [browser for browser, hour in rows if hour.startswith(DAY)]
    largest = sorted(Counter(name or "unknown" for name in browsers).items(), key=lambda item: (-item[1], item[0]))
    expected = {**dict(largest[:3]), "other": sum(count for _, count in largest[3:])}
    assert dict(project.deployment.rows(DATASET, "browser", "events")) == expected


def changes(root: Path) -> set[str]:
    """Return the files of a copy of the project that are not as in the project."""
    copied = {str(file.relative_to(root)) for file in root.rglob("*.*") if file.is_file()}
    looked_at = {name for name in copied if name[0] != "." and "__pycache__" not in name}
    return {name for name in looked_at if not (ROOT / name).is_file() or not cmp(ROOT / name, root / name, False)}
