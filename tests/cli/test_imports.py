"""A command imports the packages it needs, and the list of commands imports none of them."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import published
from blogdata.cli.output import FIRST_STEPS
from blogdata.evidence.events import EventLog
from blogdata.lake.lake import Lake

HEAVY = {"dagster", "pyspark", "great_expectations", "pandas", "sqlalchemy", "psycopg", "grpc"}
OF_TABLES = {"deltalake", "pyarrow"}
DECLARE = ("quality.contracts",)
PLAN = (
    "blogdata.orchestration.turns",
    "blogdata.planning.clock",
    "blogdata.planning.plan",
    "blogdata.patterns.idempotency.fast_metadata_cleaner",
    "blogdata.patterns.idempotency.stateful_merger",
    "blogdata.patterns.ingestion.full_loader",
    "blogdata.services.postgres",
    "blogdata.services.spark_attached",
)
RUN = """
import sys
from blogdata.cli.main import main
try:
    main()
finally:
    print(sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
"""


def imported(program: str, home: Path, *arguments: str) -> tuple[str, set[str]]:
    """Run a program; return its output, and the packages it had imported at the end."""
    environment = {**os.environ, "BLOGDATA_HOME": str(home)}
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.stderr, done.stdout
    return done.stdout, set(ast.literal_eval(done.stderr.splitlines()[-1]))


@pytest.mark.parametrize("arguments", [("--help",), ("run", "--help"), ("land", "simulate", "--help")])
def test_help_imports_nothing_that_reads_a_table(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    said, found = imported(RUN, tmp_path, *arguments)
    assert "Usage: " in said
    assert not found & (HEAVY | OF_TABLES)


def test_an_empty_home_gets_first_steps_without_spark(tmp_path: Path) -> None:
    said, found = imported(RUN, tmp_path, "ledger")
    assert said == f"nothing is published yet; try: {FIRST_STEPS}\n"
    assert not found & HEAVY


READING = (
    "ledger",
    "metrics",
    "plan",
    "report",
    "job",
    "status",
)


@pytest.mark.matrix(6)
@pytest.mark.parametrize("name", READING)
def test_a_reading_command_in_a_wrong_folder_begins_nothing_and_names_it(tmp_path: Path, name: str) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "BLOGDATA_HOME"}
    command = [sys.executable, "-m", "blogdata", name]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"where: {tmp_path / 'var'}, as BLOGDATA_HOME is not set" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("typed", "completed"), [("led", "ledger"), ("land sim", "simulate"), ("plan --j", "--json")])
def test_a_shell_completes_commands_and_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: str, completed: str
) -> None:
    words = f"blogdata {typed}"
    for name, value in {"_COMPLETE": "complete_bash", "WORDS": words, "CWORD": str(len(words.split()) - 1)}.items():
        monkeypatch.setenv(f"_BLOGDATA{name}" if name == "_COMPLETE" else f"COMP_{name}", value)
    program = RUN.replace("import sys", "import sys; sys.argv[0] = 'blogdata'")
    said, found = imported(program, tmp_path)
    assert said.split() == [completed]
    assert not found & HEAVY


@pytest.mark.parametrize("arguments", [("status",), ("metrics",)])
def test_status_and_metrics_import_no_heavy_package(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    said, found = imported(RUN, tmp_path, *arguments)
    assert said
    assert not found & HEAVY


def test_the_ledger_command_imports_no_heavy_package(tmp_path: Path) -> None:
    lake = Lake(root=str(tmp_path / "lake"))
    published.bronze(lake, {"2026-01-05T10": {"2026-01-05T10": 3}})
    EventLog(lake).publications("bronze.visits")
    said, found = imported(RUN, tmp_path, "ledger", "--json")
    (line,) = json.loads(said)
    assert (line["dataset"], line["rows_out"]) == ("bronze.visits", 3)
    assert not found & HEAVY


@pytest.mark.parametrize(("modules", "without"), [(DECLARE, HEAVY | OF_TABLES), (PLAN, HEAVY)])
def test_declaring_and_planning_import_no_heavy_package(
    tmp_path: Path, modules: tuple[str, ...], without: set[str]
) -> None:
    program = RUN.replace("from blogdata.cli.main import main", f"import {', '.join(modules)}").replace(
        "main()", "pass"
    )
    _, found = imported(program, tmp_path)
    assert not found & without
