"""A command imports the packages it needs, and the list of commands imports none of them."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {"dagster", "pyspark", "great_expectations", "pandas", "sqlalchemy", "psycopg", "grpc"}
OF_TABLES = {"deltalake", "pyarrow"}
PLAN = (
    "blogdata.runs.turns",
    "blogdata.planning.clock",
    "blogdata.planning.plan",
    "blogdata.landing.full_loader",
    "blogdata.operate.postgres",
    "blogdata.operate.spark_attached",
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
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.stderr, done.stdout
    return done.stdout, set(ast.literal_eval(done.stderr.splitlines()[-1]))


@pytest.mark.parametrize("arguments", [("--help",), ("run", "--help"), ("land", "simulate", "--help")])
def test_help_imports_nothing_that_reads_a_table(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    said, found = imported(RUN, tmp_path, *arguments)
    assert "Usage: " in said
    assert not found & (HEAVY | OF_TABLES)


@pytest.mark.parametrize("command", ["ledger", "metrics", "report", "status"])
def test_a_reading_command_imports_no_heavy_package(tmp_path: Path, command: str) -> None:
    said, found = imported(RUN, tmp_path, command)
    assert said
    assert not found & HEAVY


@pytest.mark.parametrize(("modules", "without"), [(("quality.contracts",), HEAVY | OF_TABLES), (PLAN, HEAVY)])
def test_declaring_and_planning_import_no_heavy_package(
    tmp_path: Path, modules: tuple[str, ...], without: set[str]
) -> None:
    imports = f"import {', '.join(modules)}"
    _, found = imported(RUN.replace("from blogdata.cli.main import main", imports).replace("main()", "pass"), tmp_path)
    assert not found & without
